package api

// Sweep forgets the deliveries that ended by themselves, and returns how many are
// held on.
func (a *API) Sweep() int {
	a.receipts.forgetEnded()
	return maxHeld - a.receipts.room()
}

// ProblemOf is what callers are told of an error.
var ProblemOf = problemOf

// FillWaiting makes as many claims wait as may.
func (a *API) FillWaiting() {
	for range maxWaiting {
		a.consumers.waiting <- struct{}{}
	}
}
