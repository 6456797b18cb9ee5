package main

import "context"

var (
	Main       = main
	ParsePath  = parsePath
	EachLine   = eachLine
	ReadSurvey = readSurvey
	OpenStore  = openStore
	NewCounter = newCounter
	Report     = report
)

func (s *store) Close() error { return s.close() }

func (s *store) Save(ctx context.Context, path string, total int) error {
	return s.save(ctx, path, total)
}

func (s *store) Totals(ctx context.Context) (map[string]int, int, error) { return s.totals(ctx) }

func (s survey) Fingerprint() string { return s.fingerprint }

func (c *counter) Count(ctx context.Context, line int, path string) error {
	return c.count(ctx, line, path)
}

// Counted is how many lines are counted.
func (c *counter) Counted(ctx context.Context) (int64, error) {
	return c.rdb.BitCount(ctx, c.counted, nil).Result()
}
