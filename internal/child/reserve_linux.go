package child

import (
	"io"
	"net"
	"strconv"
)

// reserve keeps a port for this process, whether anybody listens on it or not, by a
// name that the kernel gives away once, and takes back when its holder ends.
func reserve(port int) (io.Closer, error) {
	return net.Listen("unix", "@dueq-port-"+strconv.Itoa(port))
}
