package main

import (
	"fmt"
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

// newJSONLogger logs for programs to read.
func newJSONLogger(w io.Writer, level zapcore.Level) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.SecondsDurationEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.Lock(zapcore.AddSync(w)), level))
}

func parseLevel(name string) (zapcore.Level, error) {
	switch name {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(name)
	}
	return 0, fmt.Errorf("--log-level is %q, not debug, info, warn or error", name)
}
