package bucket

import (
	"math/rand/v2"
	"time"

	"github.com/dueq-io/dueq/internal/key"
)

// Stay is how long new ids fall into the same bucket.
const Stay = 64 * time.Millisecond

const (
	idLen    = 14 // with Redis's header and terminator it fills a 16-byte allocation
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	maxDraws = 1024 // enough for 16 buckets, but once in 10^28 ids
)

// NewID returns 14 random letters and digits: 83 bits, from the runtime's
// ChaCha8 generator. Among five million live events the chance that one more
// meets its double is 1 in 10^18.
//
// The ids of one moment fall into the same bucket, those of the next into the
// next, in turn. So a batch of new events goes to one sorted set or two, not to
// all, and that set is in the server's caches: half the cost of ZADD.
func NewID(buckets int, now time.Time) string {
	var id [idLen]byte
	for i := 0; i < idLen; i += idLen / 2 {
		for n, j := rand.Uint64(), i; j < i+idLen/2; j++ {
			id[j] = alphabet[n%uint64(len(alphabet))]
			n /= uint64(len(alphabet))
		}
	}
	wanted := int(now.UnixMilli() / Stay.Milliseconds() % int64(buckets))
	draw := rand.IntN(len(alphabet) * len(alphabet))
	for range maxDraws {
		if key.ShardBytes(id[:], buckets) == wanted {
			break
		}
		id[idLen-1] = alphabet[draw%len(alphabet)]
		id[idLen-2] = alphabet[draw/len(alphabet)%len(alphabet)]
		draw++
	}
	return string(id[:])
}
