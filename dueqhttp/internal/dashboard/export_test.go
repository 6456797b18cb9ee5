package dashboard

// For tests of this package.
var (
	Rate     = rate
	Span     = span
	Relative = relative
	BytesOf  = bytesOf
	Excerpt  = excerpt
)

// History is a history.
type History = history

// Add is history.add.
var Add = (*history).add

// MaxPoints is the most points of a history.
const MaxPoints = maxPoints

// Coarse is coarse.
var Coarse = coarse
