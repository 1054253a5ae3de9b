package cli

import (
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/mail"
	"github.com/perdure/perdure/task/sms"
)

// The variables of secrets, which have no flags, because all users of the host can see
// flags. Each can also name a file, with the suffix _FILE.
const (
	smtpPassword = envPrefix + "SMTP_PASSWORD"
	resendKey    = envPrefix + "RESEND_KEY"
	twilioToken  = envPrefix + "TWILIO_TOKEN"
)

// secretVariables are the variables without a flag.
var secretVariables = []string{smtpPassword, resendKey, twilioToken, encryptionKeys, webhookSecrets}

// senders are the flags that select the senders of email and SMS.
type senders struct {
	email, sms    string
	dir           string
	smtpHost      string
	smtpPort      int
	smtpSecurity  string
	smtpUser      string
	twilioAccount string
	smsFrom       string
}

func (s *senders) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.email, "email", "files", "delivery of email: one of files (stored, not sent), smtp, resend (key in "+resendKey+")")
	flags.StringVar(&s.sms, "sms", "files", "delivery of SMS: one of files (stored, not sent), twilio (token in "+twilioToken+")")
	flags.StringVar(&s.dir, "sent-dir", "data/sent", "directory for messages that are stored in files")
	flags.StringVar(&s.smtpHost, "smtp-host", "", "host of the SMTP server")
	flags.IntVar(&s.smtpPort, "smtp-port", 0, "port of the SMTP server (default: 587, with tls 465)")
	flags.StringVar(&s.smtpSecurity, "smtp-security", "starttls", "encryption of SMTP: one of starttls, tls, plain")
	flags.StringVar(&s.smtpUser, "smtp-username", "", "user of the SMTP server (password in "+smtpPassword+")")
	flags.StringVar(&s.twilioAccount, "twilio-account", "", "account of Twilio")
	flags.StringVar(&s.smsFrom, "sms-from", "", "default sender number of SMS")
}

// make returns the senders that the flags select.
func (s *senders) make(a *app) (map[string]task.Sender, error) {
	email, err := s.makeEmail(a)
	if err != nil {
		return nil, err
	}
	text, err := s.makeSMS(a)
	if err != nil {
		return nil, err
	}
	return map[string]task.Sender{"email": email, "sms": text}, nil
}

// filesOnly reports whether nothing is sent, which is the default.
func (s *senders) filesOnly() bool { return s.email == "files" && s.sms == "files" }

func (s *senders) makeEmail(a *app) (task.Sender, error) {
	switch s.email {
	case "files":
		return task.Files(s.dir), nil
	case "smtp":
		o := &mail.SMTPOptions{Port: s.smtpPort, Security: mail.Security(s.smtpSecurity), Username: s.smtpUser}
		if s.smtpUser != "" {
			o.Password = a.secret(smtpPassword)
		}
		return mail.SMTP(s.smtpHost, o)
	case "resend":
		return mail.Resend(a.secret(resendKey), nil)
	}
	return nil, usagef("--email must be one of files, smtp, resend, got %q", s.email)
}

func (s *senders) makeSMS(a *app) (task.Sender, error) {
	switch s.sms {
	case "files":
		return task.Files(s.dir), nil
	case "twilio":
		return sms.Twilio(s.twilioAccount, a.secret(twilioToken), &sms.TwilioOptions{From: s.smsFrom})
	}
	return nil, usagef("--sms must be one of files, twilio, got %q", s.sms)
}

// secret returns a secret of the environment, which is read at each use.
func (a *app) secret(variable string) task.Secret {
	if file := a.env[variable+"_FILE"]; file != "" {
		return task.FileSecret(file)
	}
	return task.EnvSecret(variable)
}

// secrets returns the texts that must not be logged.
func (a *app) secrets() []string {
	var all []string
	for _, variable := range secretVariables {
		_, value, err := a.lookup([]string{variable})
		if err == nil && value != "" {
			all = append(all, value)
		}
		if variable == encryptionKeys {
			all = append(all, keyTexts(value)...)
		}
	}
	return append(all, a.bearer)
}
