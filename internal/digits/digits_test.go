package digits_test

import (
	"fmt"
	"math"

	"github.com/dueq-io/dueq/internal/digits"
)

func ExampleGroup() {
	for _, n := range []int{0, 999, 1000, -999, -1000, 1234567, math.MinInt64} {
		fmt.Println(digits.Group(n))
	}
	// Output:
	// 0
	// 999
	// 1,000
	// -999
	// -1,000
	// 1,234,567
	// -9,223,372,036,854,775,808
}
