package dueqhttp

// RetryAfter is retryAfter, for the fuzzer.
var RetryAfter = retryAfter
