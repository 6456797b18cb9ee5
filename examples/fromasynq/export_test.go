package fromasynq

var (
	EnqueueBefore = enqueueBefore
	ServeBefore   = serveBefore
	PublishAfter  = publishAfter
	ServeAfter    = serveAfter
	Every         = every
	Report        = report
)
