package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dueq-io/dueq"
)

// topicsPerPage is the most topics of a page.
const topicsPerPage = 100

// topicsData is the page of all topics.
type topicsData struct {
	Total   topicState // of all topics that could be counted
	Rates   rates      // of these
	Now     point
	Count   int    // topics
	Missing int    // topics that could not be counted
	Search  string // what their names must contain
	Sort    string // the column by which they are sorted
	Page    int
	Found   int
	Rows    []topicRow
}

type topicRow struct {
	topicState
	Rates rates
	Now   point
}

// columns are those by which topics can be sorted, largest first; names are
// sorted in their order.
var columns = map[string]func(dueq.Stats) int{
	"scheduled": func(s dueq.Stats) int { return s.Scheduled },
	"ready":     func(s dueq.Stats) int { return s.Ready },
	"leased":    func(s dueq.Stats) int { return s.Leased },
	"dead":      func(s dueq.Stats) int { return s.Dead },
	"oldest": func(s dueq.Stats) int {
		if s.OldestDue.IsZero() {
			return -1 << 62
		}
		return -int(s.OldestDue.UnixMilli())
	},
}

func (d *dashboard) topics(r *http.Request) (*page, error) {
	all, err := d.sampler.look(r.Context())
	if err != nil {
		return nil, err
	}
	f := newFrame(all.Total.Points, all.At)
	data := &topicsData{
		Total: all.Total, Rates: newRates(all.Total.Points, f), Now: now(all.Total.Points), Count: len(all.Topics), Missing: all.Missing,
		Search: r.FormValue("search"), Sort: r.FormValue("sort"), Page: 1,
	}
	if n, err := strconv.Atoi(r.FormValue("page")); err == nil && n > 0 {
		data.Page = n
	}
	var found []topicState
	for _, t := range all.Topics {
		if strings.Contains(strings.ToLower(t.Name), strings.ToLower(data.Search)) {
			found = append(found, t)
		}
	}
	if by := columns[data.Sort]; by != nil {
		slices.SortStableFunc(found, func(a, b topicState) int { return cmp.Compare(by(b.Stats), by(a.Stats)) })
	} else {
		data.Sort = ""
	}
	data.Found = len(found)
	data.Page = min(data.Page, data.Pages())
	from := (data.Page - 1) * topicsPerPage
	for _, t := range found[from:min(from+topicsPerPage, len(found))] {
		data.Rows = append(data.Rows, topicRow{topicState: t, Rates: newRates(t.Points, f), Now: now(t.Points)})
	}
	return &page{name: "topics", Title: "Topics", Nav: "topics", Live: true, Data: data}, nil
}

// Pages is how many pages the topics that were found fill, at least one.
func (t *topicsData) Pages() int { return max(1, (t.Found+topicsPerPage-1)/topicsPerPage) }

// SortBy is a link to the same topics in another order.
func (t *topicsData) SortBy(column string) string {
	return with("./", "search", t.Search, "sort", column)
}

// Turn is a link to a page so many further on.
func (t *topicsData) Turn(by int) string {
	return with("./", "search", t.Search, "sort", t.Sort, "page", strconv.Itoa(t.Page+by))
}
