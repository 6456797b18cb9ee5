package webhook

var (
	Verdict    = verdict
	RetryAfter = retryAfter
)
