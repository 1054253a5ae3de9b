package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Due is a due time: a time or a delay.
type Due struct {
	At    *time.Time
	Delay time.Duration
}

// Email is an email to be sent. Nil texts are absent.
type Email struct {
	From, To, Subject string
	Text, HTML        *string
}

// SMS is an SMS to be sent. If From is absent, the sender chooses it.
type SMS struct {
	From     *string
	To, Body string
}

// SendEmail returns the statements that record an email and start sending it. id is called
// with the number of the send.
func (s *Store) SendEmail(m Email, due Due, now Now, id func(int64)) []sqldb.Stmt {
	if s.dialect.HasFunctions() {
		return append(s.TaskClock(now), oneColumn(s.stmt("CommsSendEmail", m.From, m.To, m.Subject, m.Text, m.HTML, due.At, due.Delay.Microseconds()), id))
	}
	create := returning(s.stmts("CommsCreateEmail", m.From, m.To, m.Subject, m.Text, m.HTML, at(now)), func(int64) {})
	return append(create, s.KickoffSend("email", 0, due, now, id)...)
}

// SendSMS is SendEmail for an SMS.
func (s *Store) SendSMS(m SMS, due Due, now Now, id func(int64)) []sqldb.Stmt {
	if s.dialect.HasFunctions() {
		return append(s.TaskClock(now), oneColumn(s.stmt("CommsSendSMS", m.To, m.Body, m.From, due.At, due.Delay.Microseconds()), id))
	}
	create := returning(s.stmts("CommsCreateSMS", m.From, m.To, m.Body, at(now)), func(int64) {})
	return append(create, s.KickoffSend("sms", 0, due, now, id)...)
}

// KickoffSend returns the statements that start sending a message, on SQLite. Message 0 is the
// message that was just created.
func (s *Store) KickoffSend(channel string, message int64, due Due, now Now, id func(int64)) []sqldb.Stmt {
	var which *int64
	if message != 0 {
		which = &message
	}
	var stmts []sqldb.Stmt
	for text := range strings.SplitSeq(s.comms("CommsKickoff", channel), "\n;\n") {
		stmts = append(stmts, sqldb.Stmt{SQL: text, Args: []any{which, due.At, due.Delay.Microseconds(), at(now)}})
	}
	stmts = returning(stmts, id)
	stmts[0].Done = sqldb.One(&fault.NotFound{Kind: channel + " message", ID: strconv.FormatInt(message, 10)})
	return stmts
}

// returning passes the number that a statement returns to id, for all statements that return one.
func returning(stmts []sqldb.Stmt, id func(int64)) []sqldb.Stmt {
	for i := range stmts {
		if strings.Contains(stmts[i].SQL, "\nreturning ") {
			stmts[i] = oneColumn(stmts[i], id)
		}
	}
	return stmts
}

// comms returns a statement of a channel: email or sms.
func (s *Store) comms(name, channel string) string {
	return strings.ReplaceAll(s.text(name), "{channel}", channel)
}

// SendFacts are the facts from which a supervisor decides. The outstanding attempt is 0 if
// there is none. Over is true if the task of the attempt will not record an outcome.
type SendFacts struct {
	Key                 string
	Message             int64
	Succeeded, Refused  bool
	Failures, Scheduled int
	First               *time.Time
	Attempt             int64
	Task                int64
	Over                bool
}

// ReadSendFacts returns the statement that reads the facts of a send. found is not called if
// there is no such send.
func (s *Store) ReadSendFacts(channel string, id int64, now Now, found func(SendFacts)) sqldb.Stmt {
	return read(sqldb.Stmt{SQL: s.comms("CommsFacts", channel), Args: []any{id, at(now)}}, found, func(f *SendFacts) []any {
		return []any{&f.Key, &f.Message, &f.Succeeded, &f.Failures, &f.Scheduled, &f.Refused, &f.First, &f.Attempt, &f.Task, &f.Over}
	})
}

// ScheduleAttempt returns the statement that records that an attempt was started.
func (s *Store) ScheduleAttempt(channel string, id, attempt, task int64, now Now) sqldb.Stmt {
	return sqldb.Exec(s.comms("CommsSchedule", channel), id, attempt, task, at(now))
}

// FailAttempt returns the statement that records that an attempt failed, once.
func (s *Store) FailAttempt(channel string, id, attempt int64, message string, permanent bool, now Now) sqldb.Stmt {
	return sqldb.Exec(s.comms("CommsFail", channel), id, attempt, message, permanent, at(now))
}

// SucceedAttempt returns the statement that records that a send succeeded, once.
func (s *Store) SucceedAttempt(channel string, id, attempt int64, result *string, now Now) sqldb.Stmt {
	return sqldb.Exec(s.comms("CommsSucceed", channel), id, attempt, result, at(now))
}

// ReadAttempt returns the statement that reads the recorded facts of an attempt.
func (s *Store) ReadAttempt(channel string, id, attempt int64, begun, failed, succeeded *bool) sqldb.Stmt {
	return sqldb.Stmt{SQL: s.comms("CommsAttempt", channel), Args: []any{id, attempt}, Row: func(scan sqldb.Scan) error {
		return scan(begun, failed, succeeded)
	}}
}

// ReadMessage returns the statement that reads a message: as JSON for its
// sender, and its body.
func (s *Store) ReadMessage(channel string, id int64, message, body *string) sqldb.Stmt {
	read := s.stmt("CommsEmailMessage", id)
	if channel == "sms" {
		read = s.stmt("CommsSMSMessage", id)
	}
	read.Row = func(scan sqldb.Scan) error { return scan(message, body) }
	return read
}
