package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // registers the driver
)

// store is the table of totals in the database. It has the totals of many logs;
// a store sees those of one.
type store struct {
	db  *sql.DB
	log string
}

// pragmas: with a write-ahead log, a transaction outlives the process that made
// it. Should the machine crash and lose some, [counter.catchUp] repeats them.
const pragmas = "?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=busy_timeout(10000)"

const schema = `CREATE TABLE IF NOT EXISTS pageviews (
	log    TEXT,
	path   BLOB, -- its bytes: a log need not be UTF-8
	total  INTEGER NOT NULL,
	writes INTEGER NOT NULL, -- how often this row was written
	PRIMARY KEY (log, path)
) WITHOUT ROWID`

// save raises a path's total. It may run twice, and late: a total that is there
// already, or one that is higher, stays untouched, and no write is counted.
const save = `INSERT INTO pageviews (log, path, total, writes) VALUES (?, ?, ?, 1)
ON CONFLICT (log, path) DO UPDATE SET total = excluded.total, writes = writes + 1
WHERE excluded.total > pageviews.total`

func openStore(ctx context.Context, file, log string) (*store, error) {
	db, err := sql.Open("sqlite", file+pragmas)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", file, err)
	}
	db.SetMaxOpenConns(1) // SQLite writes one by one anyway
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close() // the first error says it all
		return nil, fmt.Errorf("open database %s: %w", file, err)
	}
	return &store{db: db, log: log}, nil
}

func (s *store) close() error { return s.db.Close() }

// save stores a path's total unless the table has a higher one.
func (s *store) save(ctx context.Context, path string, total int) error {
	if _, err := s.db.ExecContext(ctx, save, s.log, []byte(path), total); err != nil {
		return fmt.Errorf("save total of %q: %w", path, err)
	}
	return nil
}

// clear forgets all totals.
func (s *store) clear(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM pageviews WHERE log = ?`, s.log); err != nil {
		return fmt.Errorf("clear totals: %w", err)
	}
	return nil
}

// totals returns all totals by path, and how many writes made them.
func (s *store) totals(ctx context.Context) (totals map[string]int, writes int, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT path, total, writes FROM pageviews WHERE log = ?`, s.log)
	if err != nil {
		return nil, 0, fmt.Errorf("read totals: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has told
	totals = make(map[string]int)
	for rows.Next() {
		var path []byte
		var total, n int
		if err := rows.Scan(&path, &total, &n); err != nil {
			return nil, 0, fmt.Errorf("read totals: %w", err)
		}
		totals[string(path)] = total
		writes += n
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("read totals: %w", err)
	}
	return totals, writes, nil
}
