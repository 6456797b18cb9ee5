package main_test

import (
	"os"
	"testing"

	command "github.com/dueq-io/dueq/cmd/dueq"
	"github.com/dueq-io/dueq/internal/redistest"
)

// asCommand makes the test binary be the command, for tests of whole processes.
const asCommand = "DUEQ_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		command.Main()
	}
	redistest.Main(m)
}
