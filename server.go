package dueq

import (
	"context"
	"strings"

	"go.uber.org/zap"
)

// warnOfServer logs what makes a Redis server unfit to keep events. A server
// that does not tell is not warned about.
func (q *Queue) warnOfServer(ctx context.Context) {
	memory, err := q.rdb.Info(ctx, "memory").Result()
	if policy := infoField(memory, "maxmemory_policy"); err == nil && policy != "" && policy != "noeviction" {
		q.opts.Logger.Warn("this Redis may evict events: set maxmemory-policy to noeviction", zap.String("maxmemory_policy", policy))
	}
	persistence, err := q.rdb.Info(ctx, "persistence").Result()
	if err != nil || infoField(persistence, "aof_enabled") != "0" {
		return
	}
	if config, err := q.rdb.ConfigGet(ctx, "save").Result(); err == nil && config["save"] == "" {
		q.opts.Logger.Warn("this Redis persists nothing: a restart loses all events; set appendonly yes")
	}
}

// infoField finds a field in a reply of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
