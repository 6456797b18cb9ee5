package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger logs warnings and errors for people to read.
func newLogger(w io.Writer) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		LevelKey: "level", EncodeLevel: zapcore.CapitalLevelEncoder,
		MessageKey: "message", ConsoleSeparator: " ",
		EncodeDuration: zapcore.StringDurationEncoder, EncodeTime: zapcore.ISO8601TimeEncoder,
	})
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), zap.WarnLevel))
}
