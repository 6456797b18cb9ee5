package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
)

const shown = 10

// report prints the top ten and compares all totals with the direct count of the
// log. Its error says that they differ.
func report(out io.Writer, direct survey, totals map[string]int, writes int) error {
	paths := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b))
	})
	for _, path := range paths[:min(shown, len(paths))] {
		fmt.Fprintf(out, "%8d  %s\n", totals[path], printable(path))
	}
	fmt.Fprintf(out, "%d requests for %d paths; %d lines are no requests\n", direct.requests, len(direct.counts), direct.others)
	fmt.Fprintf(out, "%d database writes, one for %.1f requests\n", writes, float64(direct.requests)/float64(max(writes, 1)))

	wrong := 0
	for path := range union(direct.counts, totals) {
		if direct.counts[path] == totals[path] {
			continue
		}
		if wrong++; wrong <= shown {
			fmt.Fprintf(out, "WRONG: total %d, direct count %d: %s\n", totals[path], direct.counts[path], printable(path))
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d totals are wrong", wrong, len(direct.counts))
	}
	fmt.Fprintf(out, "all %d totals equal the direct count of the log\n", len(totals))
	return nil
}

func union(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// printable quotes a path that could upset a terminal.
func printable(path string) string {
	if quoted := fmt.Sprintf("%q", path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
