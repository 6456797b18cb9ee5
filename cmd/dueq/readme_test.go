package main_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	main "github.com/dueq-io/dueq/cmd/dueq"
)

// The README's table has a line for each verb, and for no other.
func TestREADMEHasAllVerbs(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(content), "| verb | does |\n")
	if !found {
		t.Fatal("no table of verbs")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, verb := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(first, -1) {
			told = append(told, verb[1])
		}
	}
	root := main.NewRoot()
	root.InitDefaultCompletionCmd()
	var verbs []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	slices.Sort(told)
	slices.Sort(verbs)
	if !slices.Equal(told, verbs) {
		t.Errorf("the README tells of\n%q, the verbs are\n%q", told, verbs)
	}
}
