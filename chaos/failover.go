package main

import (
	"context"
	"syscall"

	"github.com/dueq-io/dueq/chaos/history"
	"github.com/dueq-io/dueq/internal/key"
)

// noticeTime is how long processes may take to find a new master.
const noticeTime = lease

// hitNodes breaks one of several servers, and returns once they all are well
// again: run, unlike ctx, lasts longer than the time for faults.
func (a *arena) hitNodes(run, ctx context.Context, s step) error {
	a.serverMu.Lock()
	defer a.serverMu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	v, err := a.awaitWhole(run)
	if err != nil {
		return err
	}
	a.expect(history.Forced)
	defer a.expect("")
	master, replica := v.pair(s.dice)
	switch s.name {
	case "master-kill":
		err = a.killMaster(run, s, master, replica)
	case "master-stop":
		err = a.stopMaster(run, s, master, replica)
	case "master-pause":
		healed := a.record(s, "", "", master.Addr())
		master.signal(syscall.SIGSTOP)
		pause(run, s.lasts)
		master.signal(syscall.SIGCONT)
		healed()
	case "replica-kill":
		err = a.killReplica(run, s, master, replica)
	case "failover":
		a.expect(history.Planned)
		healed := a.record(s, "", "", replica.Addr())
		err = failOver(run, replica)
		pause(run, noticeTime)
		healed()
	case "slot-move":
		topic, p := topics[s.dice/2%uint64(len(topics))], int(s.dice/8%uint64(a.redis.partitions()))
		lane := key.NewLane(namespace, topic, p, a.redis.partitions(), buckets)
		healed := a.record(s, "", "", lane.Tag)
		err = a.redis.moveLane(run, lane, v, s.dice/64)
		healed()
	}
	if err != nil {
		return err
	}
	_, err = a.awaitWhole(run)
	return err
}

// killMaster kills a master, and starts it again once its replica has taken over.
func (a *arena) killMaster(run context.Context, s step, master, replica *server) error {
	master.down.Store(true)
	defer master.down.Store(false)
	healed := a.record(s, "", "", master.Addr())
	master.kill()
	if err := await(run, "the replica takes over", func() bool { return replica.leads(run) }); err != nil {
		return err
	}
	pause(run, noticeTime)
	healed()
	pause(run, s.lasts)
	a.redis.comeBack(master, replica, s.dice/4)
	return master.start(run)
}

// stopMaster stops a master until its replica has taken over, and longer: when it
// goes on, it believes that nothing has happened.
func (a *arena) stopMaster(run context.Context, s step, master, replica *server) error {
	master.down.Store(true)
	defer master.down.Store(false)
	healed := a.record(s, "", "", master.Addr())
	master.signal(syscall.SIGSTOP)
	err := await(run, "the replica takes over", func() bool { return replica.leads(run) })
	if err == nil {
		pause(run, s.lasts)
	}
	master.signal(syscall.SIGCONT)
	pause(run, noticeTime)
	healed()
	return err
}

// killReplica kills a replica: it comes back empty.
func (a *arena) killReplica(run context.Context, s step, master, replica *server) error {
	replica.down.Store(true)
	defer replica.down.Store(false)
	healed := a.record(s, "", "", replica.Addr())
	defer healed()
	replica.kill()
	pause(run, s.lasts)
	a.redis.comeBack(replica, master, 0)
	return replica.start(run)
}
