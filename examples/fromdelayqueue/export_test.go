package fromdelayqueue

var (
	Publish = publish
	Serve   = serve
)
