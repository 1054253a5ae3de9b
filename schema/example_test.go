package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/schema"
)

// Describe tables in Go. Nothing happens before the description is given to
// perdure.Open, which creates them or adds what is missing.
func Example() {
	users := schema.NewTable("users",
		schema.String("name"),
		schema.String("email").Unique(),
		schema.Time("joined").DefaultNow(),
	)
	posts := schema.NewTable("posts",
		schema.Ref("author", users),
		schema.Text("body"),
		schema.JSON("tags").Optional(),
		schema.Int("likes").Default(0),
	).Index("author", "likes")
	blog := schema.New("blog", users, posts)

	fmt.Println(blog.Validate())
	for _, column := range posts.Columns() {
		fmt.Println(column.Name(), column.Type(), column.IsOptional())
	}
	// Output:
	// <nil>
	// author ref false
	// body text false
	// tags json true
	// likes int false
}

// Mistakes in a description are found before anything is created.
func ExampleSchema_Validate() {
	users := schema.NewTable("users", schema.String("name")).Unique("label")
	fmt.Println(schema.New("blog", users).Validate())
	// Output: users.label is indexed but is not a column of the table
}

// A column brings a value into the one form in which every database stores it,
// and refuses what some database would change.
func ExampleColumn_Normalize() {
	age := schema.Int("age")
	fmt.Println(age.Normalize("users.age", uint8(7)))
	fmt.Println(age.Normalize("users.age", "7"))
	fmt.Println(schema.String("name").Max(3).Normalize("users.name", "Anna"))
	// Output:
	// 7 <nil>
	// <nil> users.age must be of type int, got string
	// <nil> users.name must have at most 3 characters, got 4
}

// The description is recorded in the database, so that tools that were not
// compiled with it can read the tables.
func ExampleParse() {
	users := schema.NewTable("users", schema.String("name").Unique(), schema.Int("points").Default(5))
	recorded, err := json.Marshal(schema.New("blog", users))
	if err != nil {
		panic(err)
	}
	schemas, err := schema.Parse(recorded)
	if err != nil {
		panic(err)
	}
	points, _ := schemas[0].Table("users").Column("points")
	fmt.Println(points.Type())
	fmt.Println(points.StaticDefault())
	fmt.Println(schemas[0].Table("users").Indexes())
	// Output:
	// int
	// 5 true
	// [{[name] true}]
}
