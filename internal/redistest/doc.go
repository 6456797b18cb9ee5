// Package redistest gives tests and benchmarks a real redis-server, a Redis
// Cluster, or a miniredis to run on.
//
// Real servers are processes of their own: on Linux they end with the test
// binary, however it ends; elsewhere they outlive a test binary that is killed.
// The binary is redis-server or else valkey-server, whichever is on PATH. Where
// there is none, a test is skipped, unless the environment has REQUIRE_REDIS=1:
// then it fails.
package redistest
