package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Ext is how the names of history files end.
const Ext = ".jsonl"

// ReadDir reads all history files of a folder, sorted by time.
func ReadDir(dir string) ([]Record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+Ext))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var all []Record
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		records, err := Read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("history: %s: %w", name, err)
		}
		all = append(all, records...)
	}
	sortByTime(all)
	return all, nil
}

func sortByTime(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
}

// Read reads one process's records. A last line without an end is what a kill
// has left of a record: it is ignored.
func Read(r io.Reader) ([]Record, error) {
	lines := bufio.NewReader(r)
	var records []Record
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(records)+1, err)
		}
		records = append(records, rec)
	}
}
