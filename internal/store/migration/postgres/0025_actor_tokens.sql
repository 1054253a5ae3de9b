-- Serves the list of the tokens of an actor, and their end with the actor.
create index tokens_actor_idx on perdure.tokens (actor_type, actor_id, id) where kind = 'actor';

-- Serves the list of the tokens of all actors.
create index tokens_actors_idx on perdure.tokens (id) where kind = 'actor';
