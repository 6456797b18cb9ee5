package coalesce_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/dueq-io/dueq/internal/coalesce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a function for a group to call, which a test directs.
type server struct {
	batches chan []int    // as they come in
	proceed chan struct{} // lets one of them return
}

func newGroup(limits coalesce.Limits) (*coalesce.Group[int], *server) {
	s := &server{batches: make(chan []int, 100), proceed: make(chan struct{})}
	size := func(n int) int { return n }
	return coalesce.New(limits, size, func(batch []int) {
		s.batches <- slices.Clone(batch)
		<-s.proceed
	}), s
}

// took fails the test unless exactly these batches have come in.
func (s *server) took(t *testing.T, want ...[]int) {
	t.Helper()
	synctest.Wait()
	for _, w := range want {
		select {
		case got := <-s.batches:
			if !slices.Equal(got, w) {
				t.Errorf("batch %v, want %v", got, w)
			}
		default:
			t.Errorf("no batch, want %v", w)
		}
	}
	select {
	case got := <-s.batches:
		t.Errorf("unexpected batch %v", got)
	default:
	}
}

func TestNextBatchLeavesWhenTheLastReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, s := newGroup(coalesce.Limits{Len: 100, Size: 1000, Crowd: 1000})
		g.Add(1)
		s.took(t, []int{1}) // at once
		for i := 2; i <= 5; i++ {
			g.Add(i)
		}
		g.Add()
		g.Add(6, 7)
		s.took(t) // not before the first has returned
		s.proceed <- struct{}{}
		s.took(t, []int{2, 3, 4, 5, 6, 7})
		s.proceed <- struct{}{}
		s.took(t)
		g.Add(8)
		s.took(t, []int{8})
		s.proceed <- struct{}{}
		g.Wait()
	})
}

// Who joins an idle group runs the batch itself; who joins a busy one does not wait.
func TestJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, s := newGroup(coalesce.Limits{Len: 2, Size: 1000, Crowd: 1000})
		returned := make(chan struct{})
		go func() {
			g.Join(1)
			close(returned)
		}()
		s.took(t, []int{1})
		for i := 2; i <= 4; i++ {
			g.Join(i)
		}
		s.took(t)
		select {
		case <-returned:
			t.Error("it returned before its batch")
		default:
		}
		s.proceed <- struct{}{}
		s.took(t, []int{2, 3})
		<-returned // others see to the rest
		s.proceed <- struct{}{}
		s.took(t, []int{4})
		s.proceed <- struct{}{}
		g.Wait()
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, s := newGroup(coalesce.Limits{Len: 3, Size: 10, Crowd: 1000})
		g.Add(0)
		s.took(t, []int{0})
		g.Add(1, 1, 1, 1, 9, 1, 1, 100, 5, 5, 5)
		for _, want := range [][]int{{1, 1, 1}, {1, 9}, {1, 1}, {100}, {5, 5}, {5}} {
			s.proceed <- struct{}{}
			s.took(t, want)
		}
		s.proceed <- struct{}{}
		g.Wait()
		s.took(t)
	})
}

// A second batch leaves beside the first when enough waits, never a third.
func TestCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, s := newGroup(coalesce.Limits{Len: 100, Size: 1000, Crowd: 10})
		g.Add(1)
		s.took(t, []int{1})
		g.Add(4)
		g.Add(5)
		s.took(t)
		g.Add(1)
		s.took(t, []int{4, 5, 1})
		g.Add(20)
		g.Add(30)
		s.took(t)
		s.proceed <- struct{}{}
		s.took(t, []int{20, 30})
		g.Add(2)
		s.proceed <- struct{}{} // too little for two: the flight ends
		s.took(t)
		s.proceed <- struct{}{}
		s.took(t, []int{2})
		s.proceed <- struct{}{}
		g.Wait()
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, s := newGroup(coalesce.Limits{Len: 1, Size: 10, Crowd: 1000})
		g.Wait() // nothing to wait for
		g.Add(1, 2)
		waited := make(chan struct{})
		go func() {
			g.Wait()
			close(waited)
		}()
		s.took(t, []int{1})
		s.proceed <- struct{}{}
		s.took(t, []int{2})
		select {
		case <-waited:
			t.Error("it did not wait for the second batch")
		default:
		}
		s.proceed <- struct{}{}
		<-waited
	})
}

// Every item is run once, in the order in which its goroutine added it.
func TestManyAdders(t *testing.T) {
	t.Parallel()
	const goroutines, each = 50, 200
	var mu sync.Mutex
	got := make([]int, goroutines) // how many of each goroutine's items were run
	g := coalesce.New(coalesce.Limits{Len: 7, Size: 1 << 30, Crowd: 1 << 30}, func([2]int) int { return 1 }, func(batch [][2]int) {
		mu.Lock()
		defer mu.Unlock()
		if len(batch) > 7 {
			t.Errorf("batch of %d", len(batch))
		}
		for _, item := range batch {
			if item[1] != got[item[0]] {
				t.Errorf("goroutine %d: item %d was run after %d others", item[0], item[1], got[item[0]])
			}
			got[item[0]]++
		}
	})
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for n := range each {
				g.Add([2]int{i, n})
			}
		})
	}
	wg.Wait()
	g.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i, n := range got {
		if n != each {
			t.Errorf("goroutine %d: %d items were run, want %d", i, n, each)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	g := coalesce.New(coalesce.Limits{Len: 500, Size: 1 << 20, Crowd: 1 << 20}, func(int) int { return 1 }, func([]int) {})
	for b.Loop() {
		g.Add(1)
	}
	g.Wait()
}
