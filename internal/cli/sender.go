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
	flags.StringVar(&s.email, "email", "files", "how e-mail is sent: files (not at all), smtp or resend (key in "+resendKey+")")
	flags.StringVar(&s.sms, "sms", "files", "how SMS are sent: files (not at all) or twilio (token in "+twilioToken+")")
	flags.StringVar(&s.dir, "sent-dir", "data/sent", "the directory for what is sent to files")
	flags.StringVar(&s.smtpHost, "smtp-host", "", "the SMTP server")
	flags.IntVar(&s.smtpPort, "smtp-port", 0, "its port (default: 587, with tls 465)")
	flags.StringVar(&s.smtpSecurity, "smtp-security", "starttls", "starttls, tls or plain")
	flags.StringVar(&s.smtpUser, "smtp-username", "", "the user to log in as (password in "+smtpPassword+")")
	flags.StringVar(&s.twilioAccount, "twilio-account", "", "the account of Twilio")
	flags.StringVar(&s.smsFrom, "sms-from", "", "the number of SMS that have none")
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
	return nil, usagef("--email is none of files, smtp and resend")
}

func (s *senders) makeSMS(a *app) (task.Sender, error) {
	switch s.sms {
	case "files":
		return task.Files(s.dir), nil
	case "twilio":
		return sms.Twilio(s.twilioAccount, a.secret(twilioToken), &sms.TwilioOptions{From: s.smsFrom})
	}
	return nil, usagef("--sms is neither files nor twilio")
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
