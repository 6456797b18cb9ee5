package conserve_test

import (
	"testing"

	"github.com/dueq-io/dueq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
