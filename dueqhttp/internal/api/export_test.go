package api

// Sweep forgets the deliveries that ended by themselves, and returns how many are
// held on.
func (a *API) Sweep() int {
	a.receipts.forgetEnded()
	return maxHeld - a.receipts.room()
}
