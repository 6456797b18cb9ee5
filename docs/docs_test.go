// Package docs_test holds the documents to what they say: each Go snippet is code
// that is compiled elsewhere, each link leads somewhere, and the README says the
// same in both languages.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = ".."

// fence begins or ends a block of code, and may name its language.
var fence = regexp.MustCompile("^ *```([a-z]*)")

// document is a file of Markdown.
type document struct {
	path     string // relative to this folder
	prose    string // without blocks of code
	blocks   []block
	headings []string
	levels   []int // of the headings
}

type block struct{ language, text string }

func read(t *testing.T, path string) *document {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &document{path: path}
	inside := false
	for line := range strings.Lines(string(content)) {
		switch found := fence.FindStringSubmatch(line); {
		case found != nil && !inside:
			d.blocks = append(d.blocks, block{language: found[1]})
			inside = true
		case found != nil:
			inside = false
		case inside:
			d.blocks[len(d.blocks)-1].text += line
		default:
			d.prose += line
			if strings.HasPrefix(line, "#") {
				heading := strings.TrimLeft(line, "#")
				d.headings = append(d.headings, strings.TrimSpace(heading))
				d.levels = append(d.levels, len(line)-len(heading))
			}
		}
	}
	if inside {
		t.Errorf("%s: a block of code has no end", path)
	}
	return d
}

// documents are all Markdown files of the repository.
func documents(t *testing.T) []*document {
	t.Helper()
	var docs []*document
	for _, path := range files(t, ".md") {
		docs = append(docs, read(t, path))
	}
	return docs
}

// files are those in the repository whose name ends so.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && path != root
		if entry.IsDir() && (hidden || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(path, suffix) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// flat is Go code without indentation.
func flat(code string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestSnippetsAreCompiled(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, path := range files(t, ".go") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(flat(string(content)))
	}
	code := all.String()
	n := 0
	for _, d := range documents(t) {
		if !strings.HasPrefix(filepath.Base(d.path), "README") && filepath.Base(filepath.Dir(d.path)) != "docs" {
			continue
		}
		for _, b := range d.blocks {
			if b.language != "go" {
				continue
			}
			n++
			if !strings.Contains(code, flat(b.text)) {
				t.Errorf("%s: no Go file has this:\n%s", d.path, b.text)
			}
		}
	}
	if n == 0 {
		t.Error("no snippets were found")
	}
}

// link is a Markdown link or image, inline or as a reference.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m)^\[[^]]+\]: (\S+)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	docs := make(map[string]*document)
	for _, d := range documents(t) {
		docs[d.path] = d
	}
	for _, d := range docs {
		for _, found := range link.FindAllStringSubmatch(d.prose, -1) {
			target := found[1] + found[2]
			if strings.Contains(target, ":") {
				continue // another server's
			}
			file, anchor, _ := strings.Cut(target, "#")
			path := d.path
			if file != "" {
				path = filepath.Join(filepath.Dir(d.path), file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link to %s: %v", d.path, target, err)
				continue
			}
			if anchor != "" && (docs[path] == nil || !docs[path].has(anchor)) {
				t.Errorf("%s: link to %s: no such heading", d.path, target)
			}
		}
	}
}

// has reports whether a heading has this anchor, as GitHub makes them.
func (d *document) has(anchor string) bool {
	for _, h := range d.headings {
		var b strings.Builder
		for _, r := range strings.ToLower(h) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			}
		}
		if b.String() == anchor {
			return true
		}
	}
	return false
}

// The README in Chinese is the one in English: as many headings of each level, the
// same code, the same links, as many lines in its tables.
func TestReadmesAreAlike(t *testing.T) {
	t.Parallel()
	english, chinese := read(t, filepath.Join(root, "README.md")), read(t, filepath.Join(root, "README.zh-CN.md"))
	if !slices.Equal(english.levels, chinese.levels) {
		t.Errorf("headings: %q and %q", english.headings, chinese.headings)
	}
	for i := range min(len(english.blocks), len(chinese.blocks)) {
		if english.blocks[i] != chinese.blocks[i] {
			t.Errorf("these blocks differ:\n%s\n%s", english.blocks[i].text, chinese.blocks[i].text)
		}
	}
	if n, m := len(english.blocks), len(chinese.blocks); n != m {
		t.Errorf("%d and %d blocks of code", n, m)
	}
	if n, m := strings.Count(english.prose, "\n|"), strings.Count(chinese.prose, "\n|"); n != m {
		t.Errorf("%d and %d lines in tables", n, m)
	}
	links := func(d *document) []string {
		var targets []string
		for _, found := range link.FindAllStringSubmatch(d.prose, -1) {
			if target, _, _ := strings.Cut(found[1]+found[2], "#"); !strings.HasPrefix(target, "README") && target != "" {
				targets = append(targets, target)
			}
		}
		slices.Sort(targets)
		return targets
	}
	if a, b := links(english), links(chinese); !slices.Equal(a, b) {
		t.Errorf("links differ:\n%q\n%q", a, b)
	}
}
