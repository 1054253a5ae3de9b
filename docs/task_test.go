package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/mail"
	"github.com/perdure/perdure/task/sms"
)

// newTaskWorker returns a worker that prints what it sends.
func newTaskWorker(eng *perdure.Engine) *task.Worker {
	send := func(_ context.Context, payload json.RawMessage) (any, error) {
		var m mail.Message
		if err := json.Unmarshal(payload, &m); err != nil {
			return nil, err
		}
		fmt.Println("sending", m.Subject, "to", m.To)
		return mail.Result{Provider: "example", ID: "1"}, nil
	}
	worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{"email": send}})
	if err != nil {
		log.Fatal(err)
	}
	return worker
}

func Example_taskEmail() {
	eng := openBank()
	defer eng.Close()
	worker := newTaskWorker(eng)

	var ticket *task.Ticket
	err := eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		if err := transfer(tx, "ada", "bea", 10); err != nil {
			return err
		}
		ticket, err = task.SendEmailIn(tx, task.Email{
			From: "bank@example.com", To: "ada@example.com", Subject: "Your transfer", Text: "You sent 10 to Bea.",
		}, nil)
		return err
	})
	fmt.Println("send", ticket.ID, err)

	n, err := worker.Process(ctx) // usually a dispatcher calls Process; see below
	fmt.Println(n, "tasks", err)
	// Output:
	// send 1 <nil>
	// sending Your transfer to ada@example.com
	// 2 tasks <nil>
}

func runTasks(ctx context.Context, eng *perdure.Engine) error {
	email, err := mail.Resend(task.EnvSecret("RESEND_API_KEY"), nil)
	if err != nil {
		return err
	}
	text, err := sms.Twilio(os.Getenv("TWILIO_ACCOUNT_SID"), task.EnvSecret("TWILIO_AUTH_TOKEN"), &sms.TwilioOptions{From: "+15005550006"})
	if err != nil {
		return err
	}
	worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{"email": email, "sms": text}})
	if err != nil {
		return err
	}
	dispatcher, err := dispatch.NewWaker(worker, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	<-ctx.Done()
	return dispatcher.Stop(context.Background()) // waits for running sends and their handlers
}

func runRestrictedWorker(ctx context.Context, send task.Sender) error {
	worker, err := task.OpenWorker(ctx, os.Getenv("WORKER_DATABASE_URL"), &task.Options{Senders: map[string]task.Sender{"email": send}})
	if err != nil {
		return err
	}
	defer worker.Close()
	dispatcher, err := dispatch.NewPoller(worker, nil)
	if err != nil {
		return err
	}
	dispatcher.Start()
	<-ctx.Done()
	return dispatcher.Stop(context.Background())
}

// Example_runTasks is not shown: it runs what is shown as far as it can be.
func Example_runTasks() {
	eng := open()
	defer eng.Close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	os.Setenv("TWILIO_ACCOUNT_SID", "AC1")
	fmt.Println(runTasks(ended, eng))
	fmt.Println(runRestrictedWorker(ended, nil) != nil)
	// Output:
	// <nil>
	// true
}
