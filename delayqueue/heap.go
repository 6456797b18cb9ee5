package delayqueue

// arity is how many children a node of the heap has. Four make the tree half as
// deep as two would, and the children of a node lie side by side in memory.
const arity = 4

// keepCap is the capacity, in entries, up to which a heap keeps its memory
// however few entries are left.
const keepCap = 4096

// entry is an item in the heap.
type entry[T any] struct {
	at   int64  // due time, as clock.offset gives it
	seq  uint64 // which push it was; orders entries with the same due time
	item T
}

func (e *entry[T]) before(o *entry[T]) bool {
	return e.at < o.at || (e.at == o.at && e.seq < o.seq)
}

// heap is a min-heap of entries: the first is the next one due.
type heap[T any] struct {
	entries []entry[T]
	pushes  uint64
}

// push adds item and reports whether it has become the first.
func (h *heap[T]) push(item T, at int64) bool {
	h.pushes++
	e := entry[T]{at: at, seq: h.pushes, item: item}
	h.entries = append(h.entries, e)
	s := h.entries
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / arity
		if at >= s[parent].at { // on a tie the older entry stays in front
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
	return i == 0
}

// pop removes the first entry and returns its item. The heap must not be empty.
func (h *heap[T]) pop() T {
	s := h.entries
	item := s[0].item
	n := len(s) - 1
	if n > 0 {
		siftDown(s[:n], &s[n])
	}
	s[n] = entry[T]{} // lets the item be collected
	h.entries = shrink(s[:n])
	return item
}

// siftDown puts e in place of the first entry of s, which must not be empty,
// and moves it down to where it belongs.
func siftDown[T any](s []entry[T], e *entry[T]) {
	i := 0
	for {
		child := arity*i + 1
		if child >= len(s) {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, len(s)); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(e) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = *e
}

// shrink returns s in half the memory if it fills a quarter of it or less.
func shrink[T any](s []entry[T]) []entry[T] {
	if cap(s) <= keepCap || len(s) > cap(s)/4 {
		return s
	}
	return append(make([]entry[T], 0, cap(s)/2), s...)
}
