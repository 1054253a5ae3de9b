package torture

import "github.com/perdure/perdure/schema"

// Shop is the schema of the Load: three tables that refer to each other, a
// unique column, defaults, and one column of every type.
type Shop struct {
	Schema                  *schema.Schema
	Accounts, Orders, Lines *schema.Table
}

// NewShop returns a new description of the shop. Extra columns are added to its accounts,
// as the next release of an application would.
func NewShop(extra ...schema.Column) *Shop {
	columns := []schema.Column{
		schema.String("name"),
		schema.String("email").Optional().Unique(),
		schema.Int("balance").Default(0),
		schema.JSON("note").Optional(),
	}
	s := &Shop{Accounts: schema.NewTable("accounts", append(columns, extra...)...)}
	s.Orders = schema.NewTable("orders",
		schema.Ref("account", s.Accounts),
		schema.String("code").Unique(),
		schema.Bool("open").Default(true),
		schema.Time("at").DefaultNow(),
	).Index("account", "at")
	s.Lines = schema.NewTable("lines",
		schema.Ref("order", s.Orders),
		schema.Int("n"),
		schema.Float("weight").Optional(),
		schema.Decimal("price").Optional(),
		schema.Bytes("photo").Optional(),
		schema.Text("remark").Default(""),
	)
	s.Schema = schema.New("shop", s.Accounts, s.Orders, s.Lines)
	return s
}
