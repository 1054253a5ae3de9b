--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)


--
-- Name: bank; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA bank;




--
-- Name: accounts; Type: TABLE; Schema: bank; Owner: -
--

CREATE TABLE bank.accounts (
    _id bigint NOT NULL,
    id text NOT NULL,
    owner text NOT NULL,
    balance bigint DEFAULT 0 NOT NULL,
    _version bigint DEFAULT 0 NOT NULL
);


--
-- Name: accounts__id_seq; Type: SEQUENCE; Schema: bank; Owner: -
--

ALTER TABLE bank.accounts ALTER COLUMN _id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME bank.accounts__id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Data for Name: accounts; Type: TABLE DATA; Schema: bank; Owner: -
--

INSERT INTO bank.accounts OVERRIDING SYSTEM VALUE VALUES (1, 'ada', 'Ada', 100, 0);
INSERT INTO bank.accounts OVERRIDING SYSTEM VALUE VALUES (2, 'bea', 'Bea', 7, 1);


--
-- Name: accounts__id_seq; Type: SEQUENCE SET; Schema: bank; Owner: -
--

SELECT pg_catalog.setval('bank.accounts__id_seq', 2, true);


--
-- Name: accounts accounts_id_key; Type: CONSTRAINT; Schema: bank; Owner: -
--

ALTER TABLE ONLY bank.accounts
    ADD CONSTRAINT accounts_id_key UNIQUE (id);


--
-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: bank; Owner: -
--

ALTER TABLE ONLY bank.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (_id);


--
-- Name: accounts_owner_key; Type: INDEX; Schema: bank; Owner: -
--

CREATE UNIQUE INDEX accounts_owner_key ON bank.accounts USING btree (owner);


--
-- PostgreSQL database dump complete
--


--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)


--
-- Data for Name: message; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--

INSERT INTO comms.message (message_id, channel, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 'email', '2026-03-01 12:00:00+00');


--
-- Data for Name: email_message; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--

INSERT INTO comms.email_message (message_id, channel, from_address, to_address, subject, text_body, html_body) VALUES (1, 'email', 'shop@example.com', 'ada@example.com', 'Order', 'It is sent.', NULL);


--
-- Data for Name: send_email_task; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--

INSERT INTO comms.send_email_task (send_email_task_id, message_id, idempotency_key, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 1, '7afe0711-c403-4b88-887d-bb56c980f005', '2026-03-01 12:00:00+00');


--
-- Data for Name: send_email_task_scheduled; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--

INSERT INTO comms.send_email_task_scheduled (send_email_task_id, attempt, task_id, created_at) VALUES (1, 1, 9, '2026-03-01 12:00:00+00');


--
-- Data for Name: send_email_task_failed; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: send_email_task_succeeded; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: sms_message; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: send_sms_task; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: send_sms_task_scheduled; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: send_sms_task_failed; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: send_sms_task_succeeded; Type: TABLE DATA; Schema: comms; Owner: perdure_owner
--



--
-- Data for Name: allowed_function; Type: TABLE DATA; Schema: internal; Owner: perdure_owner
--

INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.send_email_supervisor', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.get_email_payload', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.record_email_success', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.record_email_failure', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.send_sms_supervisor', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.get_sms_payload', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.record_sms_success', '2026-11-16 07:53:01.013402+00');
INSERT INTO internal.allowed_function (function_name, allowed_at) VALUES ('comms.record_sms_failure', '2026-11-16 07:53:01.013402+00');


--
-- Data for Name: actor_keys; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: actor_log; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'done sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'done sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'done paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'done paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'failed sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'failed sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'failed paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'failed paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'stopped', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'stopped', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"WAIT"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"waiting"', '543dcb0b375f1acfefaa82b21d5b9b315044d0d1c501ef1f7d9ef96dbd2d981d', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'stopped', 3, 'stop', NULL, 'service', 'generator', NULL, NULL, NULL, NULL, '"waiting"', '7ec14706f55129e804002701dc59a093373f51e883727e366495d349f4ee888f', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'done paid', 3, 'done', '"paid"', NULL, NULL, '0.(machine).paying', 2, NULL, NULL, '"end"', '00194b2ca1ed37425a4c91d607194c139d1064a04969f7df6cb64ea0d3e81945', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'waiting', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'waiting', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"WAIT"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"waiting"', '543dcb0b375f1acfefaa82b21d5b9b315044d0d1c501ef1f7d9ef96dbd2d981d', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'retrying sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'retrying sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'retrying paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'retrying paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'failed paid', 3, 'error', '{"$error":"refused failed paid, attempt 2"}', NULL, NULL, '0.(machine).paying', 2, NULL, NULL, '"refused"', '75c05719b602136458fa6c0c5a6ae4be96fb8e924f95a9bd0ab0bfc4fc42f422', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending secret', 1, 'start', '{"$sealed":"v1","key":"first","data":"TDB9jtisrs0H/2KP+FnT1MHq6ieg0S+cc3MU0EMAcSP6Pe9eA0CCQ0ZKqXdCIN87ZkxovsyXz3IeNDtASu5ynVk9UlSq5w8V4IU="}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending secret', 2, 'event', '{"$sealed":"v1","key":"first","data":"rK9wX30y7M7k2yXr0HywaQT+cIJGVWEb4OOu8EmV60W6mC2hHVWOTe8cGyL39f4xTVsczVbA8g3AZevSZARu1RQtITGfnelIg2by1St5wdhEMMGluVIm"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('main', 'pending paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('live', 'live sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('live', 'live sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('live', 'live paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('live', 'live paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('dead', 'dead sent', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('dead', 'dead sent', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"SEND"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"sent"', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('dead', 'dead paid', 1, 'start', '{"caller":{"id":"generator","type":"service"}}', 'service', 'generator', NULL, NULL, NULL, NULL, '"idle"', '78b813771c105ac8f908f1594680db45f1f37c4334220beb911adf05648785e9', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actor_log (actor_type, actor_id, sequence, kind, event, caller_kind, caller_id, path, generation, key, said, value, checksum, at, recorded_at) VALUES ('dead', 'dead paid', 2, 'event', '{"caller":{"id":"generator","type":"service"},"type":"PAY"}', 'service', 'generator', NULL, NULL, NULL, NULL, '"paying"', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');


--
-- Data for Name: actors; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'done sent', '01a1e358-5cab-73f2-b1d8-bda7efa3846d', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'failed sent', '01a1e358-5cb8-745d-bf2f-cc8a0cd75e80', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'stopped', '01a1e358-5cc0-74a5-bf68-31618e236ed9', 'stopped', 1, 3, '"waiting"', '
waiting
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'done paid', '01a1e358-5cb2-7147-b279-b5767e0d87f5', 'done', 1, 3, '"end"', '
end
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'waiting', '01a1e358-5dd4-792d-9358-4308f0341b8a', 'active', 1, 2, '"waiting"', '
waiting
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'retrying sent', '01a1e358-5dd6-7e04-a727-68fe6d089d6f', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'retrying paid', '01a1e358-5dd8-7b5c-8643-b98db638f0ba', 'active', 1, 2, '"paying"', '
paying
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'failed paid', '01a1e358-5cbe-7270-909c-93bf2347eaf8', 'active', 1, 3, '"refused"', '
refused
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 08:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'pending secret', '01a1e358-6798-7b9a-8741-25847dc8559d', 'active', 1, 2, '"paying"', '
paying
', 'spawn', 'service', 'generator', '{"$sealed":"v1","key":"first","data":"avVazPEHus+PNIyZcOCf/ETF9TDFVsnoiP2EgQ6VI7gz1mS4tI0lCadiKvsSUri1VcLdpVRtK1owvsrP0wAgPEBiFfx9BoIxD3w="}', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'pending sent', '01a1e358-67a7-733b-9587-b3cb36a87a93', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('main', 'pending paid', '01a1e358-67a9-74ef-a7f0-eb810e4d10b1', 'active', 1, 2, '"paying"', '
paying
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('live', 'live sent', '01a1e358-67c3-7ec9-9e3c-83e141177a65', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('live', 'live paid', '01a1e358-67ca-7016-b32f-20bb209d5127', 'active', 1, 2, '"paying"', '
paying
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('dead', 'dead sent', '01a1e358-6805-7841-b050-9ca48f597385', 'active', 1, 2, '"sent"', '
sent
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.actors (type, id, incarnation, status, machine, sequence, value, states, origin, caller_kind, caller_id, input, reason, created_at, updated_at) VALUES ('dead', 'dead paid', '01a1e358-6809-77c1-a606-44b469871aee', 'active', 1, 2, '"paying"', '
paying
', 'spawn', 'service', 'generator', '{"caller":{"id":"generator","type":"service"}}', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');


--
-- Data for Name: alarms; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'failed', 'main', 'failed', 0, '2026-03-01 09:00:00+00', '2026-03-01 08:00:00+00', 1772352000000000, '{"Label":"failed"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"fixed","max_attempts":2,"initial":3600000000000}', 2, 2, 0, 'refused failed, attempt 2', NULL, NULL, '2026-03-01 08:00:00+00', NULL, NULL, NULL, '2026-03-01 09:00:00+00', true, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('main', 'waiting', 'machine', '@1#xstate.after.10800000.(machine).waiting', 'xstate.after.10800000.(machine).waiting', 'pending', 0, '2026-03-01 14:00:00+00', NULL, 2, '{"path":"","generation":1,"id":"xstate.after.10800000.(machine).waiting","sequence":2,"target":"","targetGeneration":1,"event":{"type":"xstate.after.10800000.(machine).waiting"},"delay":10800000,"due":1772373600000}', '', 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'recurring', 'main', 'pending', 0, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 1772352000000002, '{"Label":"recurring"}', NULL, 1, 3600000000, NULL, NULL, '2026-03-01 08:00:00+00', 'once', 100, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'retrying', 'main', 'pending', 0, '2026-03-01 14:00:00+00', '2026-03-01 08:00:00+00', 1772352000000003, '{"Label":"retrying"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"fixed","max_attempts":5,"initial":10800000000000}', 5, 2, 0, 'refused retrying, attempt 2', NULL, NULL, '2026-03-01 08:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', true, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'poison alarm', 'poison alarm', 'quarantined', 0, '2026-03-01 04:00:02+00', '2026-02-28 16:00:00+00', 1772294400000000, '{"Label":"poison alarm"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 3, 'process was lost while the alarm was fired', NULL, NULL, '2026-02-28 16:00:00+00', 'Q4TOU6GX53Y67HNCITSA6ZCRLC', NULL, NULL, '2026-03-01 00:00:00+00', true, 0);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'suspect alarm', 'suspect alarm', 'pending', 0, '2026-03-01 00:00:00+00', '2026-02-28 16:00:00+00', 1772294400000000, '{"Label":"suspect alarm"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 2, 'process was lost while the alarm was fired', NULL, NULL, '2026-02-28 16:00:00+00', 'TPLT5PQUTERYE4XDZIGBO5DNVS', NULL, NULL, '2026-02-28 20:00:00+00', true, 1);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'pending secret', 'main', 'pending', 0, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 1772366400000000, '{"$sealed":"v1","key":"first","data":"dijQRi+TxgHk8noM08jWFCcfV91d1NJabMXoj91gdGEY5pjbYAYtmms2hyQ2+G3bDDNq2H/C"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'pending', 'main', 'pending', 0, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 1772366400000000, '{"Label":"pending"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'scheduled', 'main', 'pending', 0, '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', 1772366400000001, '{"Label":"scheduled"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('main', 'waiting', 'custom', 'owned', 'main', 'pending', 0, '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', 1772366400000002, '{"Label":"owned"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'live', 'live', 'processing', 0, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 1772366400000000, '{"Label":"live"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 12:00:00+00', 'TTZDBX3VT7E37KOIUAAUDJ2NXS', '7RVNCQKGASFRS6ZZJMDWTBL2NR', '2026-03-01 12:00:30+00', '2026-03-01 12:00:00+00', false, NULL);
INSERT INTO perdure.alarms (actor_type, actor_id, kind, alarm_id, type, status, priority, due_at, occurs_at, sequence, payload, path, generation, every_us, cron, zone, base_at, missed, missed_cap, caught_up, policy, max_attempts, attempts, crashes, error, webhook, trace, created_at, worker, token, lease_expires_at, last_attempt_at, logged, batch_limit) VALUES ('', '', 'custom', 'dead', 'dead', 'processing', 0, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', 1772362800000000, '{"Label":"dead"}', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, NULL, NULL, '2026-03-01 11:00:00+00', '2VW3IRKXK7HMT3RR6TN4CYIWXA', 'GUMQXCY6OUGXFCQ6V3COHC3SVI', '2026-03-01 11:00:30+00', '2026-03-01 11:00:00+00', false, NULL);


--
-- Data for Name: attempts; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c32-765e-8414-abc570e2956b', '', '', 1, NULL, 1, 'failed', 'refused failed secret, attempt 1', 'FYCTAHBSZPZGKHEM2NAIDHIL5Y', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c8c-7016-bbb5-cd6eba981e47', '', '', 1, NULL, 1, 'failed', 'refused late completed new, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my late completed', '', '', 1, NULL, 1, 'failed', 'refused late completed chosen, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c8c-7899-9ea5-c6cd186fec9c', '', '', 1, NULL, 1, 'failed', 'refused retrying new, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my retrying', '', '', 1, NULL, 1, 'failed', 'refused retrying chosen, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c84-7716-a1e3-5af2278ee3d3', '', '', 1, NULL, 1, 'failed', 'refused failed new, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my failed', '', '', 1, NULL, 1, 'failed', 'refused failed chosen, attempt 1', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'failed', '', '', 1, NULL, 1, 'failed', 'refused failed, attempt 1', 'ULDDGKGNFQSLJBGKLARR2TQ2NV', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'retrying', '', '', 1, NULL, 1, 'failed', 'refused retrying, attempt 1', 'ULDDGKGNFQSLJBGKLARR2TQ2NV', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-5c99-7e3a-b5b9-15c0a4288414', '', '', 1, 'begin', 1, 'failed', 'refused failed, attempt 0', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5cb8-745d-bf2f-cc8a0cd75e80.00000002', '', '', 1, NULL, 1, 'failed', 'refused failed sent, attempt 1', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5cbe-7270-909c-93bf2347eaf8.00000002', '', '', 1, NULL, 1, 'failed', 'refused failed paid, attempt 1', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c84-7716-a1e3-5af2278ee3d3', '', '', 2, NULL, 2, 'failed', 'refused failed new, attempt 2', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my failed', '', '', 2, NULL, 2, 'failed', 'refused failed chosen, attempt 2', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'failed', '', '', 2, NULL, 2, 'failed', 'refused failed, attempt 2', 'ULDDGKGNFQSLJBGKLARR2TQ2NV', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my retrying', '', '', 2, NULL, 2, 'failed', 'refused retrying chosen, attempt 2', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5c8c-7899-9ea5-c6cd186fec9c', '', '', 2, NULL, 2, 'failed', 'refused retrying new, attempt 2', '3J6C6G7TVCZUOVRTGJFWM3GJFP', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'retrying', '', '', 2, NULL, 2, 'failed', 'refused retrying, attempt 2', 'ULDDGKGNFQSLJBGKLARR2TQ2NV', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-5c99-7e3a-b5b9-15c0a4288414', '', '', 2, 'begin', 2, 'failed', 'refused failed, attempt 1', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-5d60-7443-8dd9-3acbb6fa6c05', '', '', 1, 'begin', 1, 'failed', 'refused retrying, attempt 0', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5cb8-745d-bf2f-cc8a0cd75e80.00000002', '', '', 2, NULL, 2, 'failed', 'refused failed sent, attempt 2', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5dd6-7e04-a727-68fe6d089d6f.00000002', '', '', 1, NULL, 1, 'failed', 'refused retrying sent, attempt 1', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5cbe-7270-909c-93bf2347eaf8.00000002', '', '', 2, NULL, 2, 'failed', 'refused failed paid, attempt 2', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5dd8-7b5c-8643-b98db638f0ba.00000002', '', '', 1, NULL, 1, 'failed', 'refused retrying paid, attempt 1', 'RVLSN2YXML6N7U5WSEJWCVEIJN', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5ef0-741a-912a-909082933a81', '', '', 1, NULL, 1, 'lost', 'process was lost while the hook ran', 'RVRX3C2MT4CKJPHURJDGI6TSVT', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5ef0-741a-912a-909082933a81', '', '', 2, NULL, 2, 'lost', 'process was lost while the hook ran', 'YNLUR5VLOOBAUN42AEVM4HNONO', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-5ef0-741a-912a-909082933a81', '', '', 3, NULL, 3, 'lost', 'process was lost while the hook ran', '4VRQ26HLVTRMHBXMPXDMF6RSCA', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my poison', '', '', 1, NULL, 1, 'lost', 'process was lost while the hook ran', 'IIESNX26WOT24SHS4BRR5VACJU', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my poison', '', '', 2, NULL, 2, 'lost', 'process was lost while the hook ran', 'CPTFGYC66GF3B3XV26JOZESVSR', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my poison', '', '', 3, NULL, 3, 'lost', 'process was lost while the hook ran', 'LUMH4NJDTOJECBQFBXP7WE5LK2', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-6144-73c7-8db1-e0ffacece534', '', '', 1, NULL, 1, 'lost', 'process was lost while the hook ran', 'RIGTLMN3YY3V6X7HJ6Y6EATJSR', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', '01a1e358-6144-73c7-8db1-e0ffacece534', '', '', 2, NULL, 2, 'lost', 'process was lost while the hook ran', '5THCYOHIVVYHNLPF5XTSQDYIVQ', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my suspect', '', '', 1, NULL, 1, 'lost', 'process was lost while the hook ran', 'KG4KFNKJ3N6SCOQMYA5ZF6J7XQ', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('hook', 'my suspect', '', '', 2, NULL, 2, 'lost', 'process was lost while the hook ran', '5JFTF7QHMFJ6QDFRVXD2FTBS62', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'poison alarm', '', '', 1, NULL, 1, 'lost', 'process was lost while the alarm was fired', 'U4JYOIPEWN3WGZCQCCGJEYEN4O', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'poison alarm', '', '', 2, NULL, 2, 'lost', 'process was lost while the alarm was fired', 'GCSAW6S5EUS2VMAGIVQBNGR3BY', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'poison alarm', '', '', 3, NULL, 3, 'lost', 'process was lost while the alarm was fired', 'Q4TOU6GX53Y67HNCITSA6ZCRLC', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'suspect alarm', '', '', 1, NULL, 1, 'lost', 'process was lost while the alarm was fired', 'VQXT4MGNHRJY4JDPZTR6YJOE4Q', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('alarm', 'suspect alarm', '', '', 2, NULL, 2, 'lost', 'process was lost while the alarm was fired', 'TPLT5PQUTERYE4XDZIGBO5DNVS', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-6613-7ec9-a13d-459ad512598d', '', '', 1, 'begin', 1, 'lost', 'process was lost while the instance ran', '01a1e358-6611-7730-b449-03d741431a57', '2026-02-28 16:00:00+00', '2026-02-28 20:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-6613-7ec9-a13d-459ad512598d', '', '', 2, 'begin', 2, 'lost', 'process was lost while the instance ran', '01a1e358-6663-7875-8e19-d38d44d18c3b', '2026-02-28 20:00:00+00', '2026-03-01 00:00:00+00');
INSERT INTO perdure.attempts (kind, id, actor_type, actor_id, seq, step, attempt, outcome, error, worker, began_at, ended_at) VALUES ('instance', '01a1e358-6613-7ec9-a13d-459ad512598d', '', '', 3, 'begin', 3, 'lost', 'process was lost while the instance ran', '01a1e358-66d6-7951-bcb0-9511a85ce030', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: audit_chains; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (1, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (2, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (3, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (4, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (5, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (6, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (7, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (8, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (9, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (10, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (11, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (12, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (13, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (14, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (15, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (16, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (17, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (18, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (19, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (20, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (21, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (22, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (23, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (24, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (25, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (26, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (27, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (28, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (29, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (30, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (31, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (32, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (33, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (34, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (35, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (36, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (37, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (38, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (39, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (40, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (41, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (42, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (43, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (44, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (45, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (46, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (47, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (48, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (49, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (50, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (51, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (52, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (53, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (54, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (55, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (56, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (57, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (58, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (59, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (60, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (61, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (62, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (63, 0, '', 0, '');
INSERT INTO perdure.audit_chains (chain, seq, hash, base_seq, base_hash) VALUES (64, 0, '', 0, '');


--
-- Data for Name: barriers; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.barriers (parent_id, fanout, pending, until, deadline_at, cancel_rest) VALUES ('0195a000-0000-7000-8000-00000000abcd', 1, 1, 0, NULL, false);


--
-- Data for Name: checkpoints; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: deadlines; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.deadlines (at, id) VALUES ('2026-03-01 16:00:00+00', '01a1e358-5d70-7937-8b3c-0b83477ffc22');


--
-- Data for Name: definitions; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.definitions (fsm, version, first_step, queue, steps, schema, updated_at, cancel_step) VALUES ('order', 1, 'begin', 'main', '["begin","paid","join"]', '{"type":"object","properties":{"Label":{"type":"string"}},"required":["Label"],"additionalProperties":false}', '2026-03-01 11:00:00+00', NULL);
INSERT INTO perdure.definitions (fsm, version, first_step, queue, steps, schema, updated_at, cancel_step) VALUES ('part', 1, 'begin', 'main', '["begin","end"]', '{"type":"object","properties":{"Label":{"type":"string"}},"required":["Label"],"additionalProperties":false}', '2026-03-01 11:00:00+00', NULL);


--
-- Data for Name: finished; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.finished (id, status, result, error, finished_at, state, ended_by) VALUES ('01a1e358-5c9b-7428-848c-be2e0e080c71', 'cancelled', NULL, 'not wanted', '2026-03-01 08:00:00+00', NULL, NULL);
INSERT INTO perdure.finished (id, status, result, error, finished_at, state, ended_by) VALUES ('01a1e358-5c9a-7dc6-beb3-0a9dd4cba4b1', 'done', '"done"', NULL, '2026-03-01 08:00:00+00', NULL, NULL);
INSERT INTO perdure.finished (id, status, result, error, finished_at, state, ended_by) VALUES ('01a1e358-5c99-7e3a-b5b9-15c0a4288414', 'failed', NULL, 'refused failed, attempt 1', '2026-03-01 11:00:00+00', NULL, NULL);
INSERT INTO perdure.finished (id, status, result, error, finished_at, state, ended_by) VALUES ('01a1e358-5dec-7643-ad8a-e086f14685e6', 'done', '"done child"', NULL, '2026-03-01 11:00:00+00', NULL, NULL);
INSERT INTO perdure.finished (id, status, result, error, finished_at, state, ended_by) VALUES ('01a1e358-6613-7ec9-a13d-459ad512598d', 'quarantined', NULL, 'process was lost too often while the instance ran', '2026-03-01 04:00:00+00', NULL, NULL);


--
-- Data for Name: firing; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: hooks; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c32-765e-8414-abc570e2956b', 'shop', 'main', '{"$sealed":"v1","key":"first","data":"OxBc5TsND+QiWV97J9EplgT8aoTDmSZUjo2nQF3P0HNvWWRZRkm3GQtcfPK0rZW9BykTxC0="}', 'failed', 0, '{"kind":"none","max_attempts":1}', 1, 1, 0, 'refused failed secret, attempt 1', '01a1e358-5c30-723d-a371-20ce57d2176a', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c8d-7936-86cd-67c5ae60dfef', 'shop', 'other', '{"Label":"cancelled new"}', 'cancelled', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-5c8d-7917-8d7e-2e2163972d6d', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my cancelled', 'shop', 'other', '{"Label":"cancelled chosen"}', 'cancelled', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-5c8d-7da5-a72f-4daaf1535250', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c8b-76a8-8413-ae3940444c84', 'shop', 'main', '{"Label":"completed new"}', 'completed', -1, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 1, 0, NULL, '01a1e358-5c8b-7629-accf-e1d18ce8c407', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '3J6C6G7TVCZUOVRTGJFWM3GJFP', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my completed', 'shop', 'main', '{"Label":"completed chosen"}', 'completed', -1, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 1, 0, NULL, '01a1e358-5c8b-7ab3-ac67-2ca27a8536d3', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '3J6C6G7TVCZUOVRTGJFWM3GJFP', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5cab-73f2-b1d8-bda7efa3846d.00000002', 'actor', 'effect/main/send', '{"actor":{"type":"main","id":"done sent"},"params":null}', 'completed', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 1, 0, NULL, '01a1e358-5cab-73f2-b1d8-bda7efa3846d', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', 'RVLSN2YXML6N7U5WSEJWCVEIJN', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5cb2-7147-b279-b5767e0d87f5.00000002', 'actor', 'task/main/pay', '{"actor":{"type":"main","id":"done paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'completed', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 1, 0, NULL, '01a1e358-5cb2-7147-b279-b5767e0d87f5', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', 'RVLSN2YXML6N7U5WSEJWCVEIJN', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my late completed', 'shop', 'main', '{"Label":"late completed chosen"}', 'completed', 0, '{"kind":"fixed","max_attempts":5,"initial":3600000000000}', 5, 2, 0, 'refused late completed chosen, attempt 1', '01a1e358-5c8c-741b-a1ea-8e4521ac02c7', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '3J6C6G7TVCZUOVRTGJFWM3GJFP', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c84-7716-a1e3-5af2278ee3d3', 'shop', 'main', '{"Label":"failed new"}', 'failed', 0, '{"kind":"fixed","max_attempts":2,"initial":3600000000000}', 2, 2, 0, 'refused failed new, attempt 2', '01a1e358-5c84-76e1-b9cf-e59195d2fc1b', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c8c-7016-bbb5-cd6eba981e47', 'shop', 'main', '{"Label":"late completed new"}', 'completed', 0, '{"kind":"fixed","max_attempts":5,"initial":3600000000000}', 5, 2, 0, 'refused late completed new, attempt 1', '01a1e358-5c8b-7f40-8c66-02682af8c486', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '3J6C6G7TVCZUOVRTGJFWM3GJFP', NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my failed', 'shop', 'main', '{"Label":"failed chosen"}', 'failed', 0, '{"kind":"fixed","max_attempts":2,"initial":3600000000000}', 2, 2, 0, 'refused failed chosen, attempt 2', '01a1e358-5c85-7751-973a-31b2688fa351', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my retrying', 'shop', 'main', '{"Label":"retrying chosen"}', 'pending', 1, '{"kind":"fixed","max_attempts":5,"initial":10800000000000}', 5, 2, 0, 'refused retrying chosen, attempt 2', '01a1e358-5c8c-7bf9-915b-a6e0c110f6d5', NULL, '2026-03-01 08:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5c8c-7899-9ea5-c6cd186fec9c', 'shop', 'main', '{"Label":"retrying new"}', 'pending', 1, '{"kind":"fixed","max_attempts":5,"initial":10800000000000}', 5, 2, 0, 'refused retrying new, attempt 2', '01a1e358-5c8c-787d-859a-4fc8dcef7181', NULL, '2026-03-01 08:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5cb8-745d-bf2f-cc8a0cd75e80.00000002', 'actor', 'effect/main/send', '{"actor":{"type":"main","id":"failed sent"},"params":null}', 'failed', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 2, 0, 'refused failed sent, attempt 2', '01a1e358-5cb8-745d-bf2f-cc8a0cd75e80', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5cbe-7270-909c-93bf2347eaf8.00000002', 'actor', 'task/main/pay', '{"actor":{"type":"main","id":"failed paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'failed', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 2, 0, 'refused failed paid, attempt 2', '01a1e358-5cbe-7270-909c-93bf2347eaf8', NULL, '2026-03-01 08:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-678b-7eeb-9523-26581e194374', 'shop', 'main', '{"$sealed":"v1","key":"first","data":"P1yeHl2ErH62yqQFC1O/k1EQaWj2mh8VLn+skG1K+TOLBI6eHvw/e1giP2aQs++r/1w7CtorNMYJfg=="}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678b-7c51-8c62-40e7cca5ca8a', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5dd6-7e04-a727-68fe6d089d6f.00000002', 'actor', 'effect/main/send', '{"actor":{"type":"main","id":"retrying sent"},"params":null}', 'pending', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 1, 0, 'refused retrying sent, attempt 1', '01a1e358-5dd6-7e04-a727-68fe6d089d6f', NULL, '2026-03-01 11:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5dd8-7b5c-8643-b98db638f0ba.00000002', 'actor', 'task/main/pay', '{"actor":{"type":"main","id":"retrying paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'pending', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 1, 0, 'refused retrying paid, attempt 1', '01a1e358-5dd8-7b5c-8643-b98db638f0ba', NULL, '2026-03-01 11:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 11:00:00+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-5ef0-741a-912a-909082933a81', 'shop', 'poison new', '{"Label":"poison new"}', 'quarantined', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 3, 'process was lost while the hook ran', '01a1e358-5ef0-73d3-9836-d3e2040a21c6', NULL, '2026-02-28 16:00:00+00', NULL, '2026-03-01 04:00:02+00', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00', '4VRQ26HLVTRMHBXMPXDMF6RSCA', NULL, NULL, 0);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my poison', 'shop', 'poison chosen', '{"Label":"poison chosen"}', 'quarantined', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 3, 'process was lost while the hook ran', '01a1e358-6080-791f-85c4-7b9871e2fda4', NULL, '2026-02-28 16:00:00+00', NULL, '2026-03-01 04:00:02+00', '2026-03-01 00:00:00+00', '2026-03-01 04:00:00+00', 'LUMH4NJDTOJECBQFBXP7WE5LK2', NULL, NULL, 0);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6144-73c7-8db1-e0ffacece534', 'shop', 'suspect new', '{"Label":"suspect new"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 2, 'process was lost while the hook ran', '01a1e358-6144-7388-bd97-717ede5a0869', NULL, '2026-02-28 16:00:00+00', NULL, '2026-03-01 00:00:00+00', '2026-02-28 20:00:00+00', NULL, '5THCYOHIVVYHNLPF5XTSQDYIVQ', NULL, NULL, 1);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my suspect', 'shop', 'suspect chosen', '{"Label":"suspect chosen"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 2, 'process was lost while the hook ran', '01a1e358-6236-75a8-bb8c-d22e32908714', NULL, '2026-02-28 16:00:00+00', NULL, '2026-03-01 00:00:00+00', '2026-02-28 20:00:00+00', NULL, '5JFTF7QHMFJ6QDFRVXD2FTBS62', NULL, NULL, 1);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6781-7e26-98b1-6cecba3cddc7', 'shop', 'main', '{"Label":"pending new"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-6781-7dd5-a6a4-c3f7586616c7', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my pending', 'shop', 'main', '{"Label":"pending chosen"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-6788-7779-b6a5-0af52ff30d7d', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6788-7f1b-9490-f753fc930429', 'shop', 'main', '{"Label":"urgent new"}', 'pending', -1, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-6788-7ef5-b957-236e6816c4e0', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my urgent', 'shop', 'main', '{"Label":"urgent chosen"}', 'pending', -1, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678a-7336-b654-c4d230d08fb4', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-678a-7925-92ec-3fc85dbaac3a', 'shop', 'main', '{"Label":"scheduled new"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678a-7908-a1e8-f58b18b4fb53', NULL, '2026-03-01 12:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my scheduled', 'shop', 'main', '{"Label":"scheduled chosen"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678b-7156-9903-0f8d33bd6831', NULL, '2026-03-01 12:00:00+00', '2026-03-01 14:00:00+00', '2026-03-01 14:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('0195a000-0000-7000-8000-00000000abcd', 'shop', 'main', '{"Label":"pending shared"}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678b-76c4-94cb-b300463c894e', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my pending secret', 'shop', 'main', '{"$sealed":"v1","key":"first","data":"qHw+jFGWgGYPoOlqQ3SfKqjMdy0X+BibsufoGVP4WdwRxApSJV26bFqw4DwQuB6+Xz5FWepAzSmYnS4sBA=="}', 'pending', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-678d-7900-a216-84953e868384', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6798-7b9a-8741-25847dc8559d.00000002', 'actor', 'task/main/pay', '{"$sealed":"v1","key":"first","data":"4KB/b0UPl0sfcgRmFViCmD8U1rZbutaMXmZpWx15PiLMjZ2R/lEsAvPtTkT1W4b/F3lMceYEqccvD9SqIzqxl72GflZ/Y26uutPp8SH+h7CEbimbxV46R7G4feGTPwcqexHnXCqw0dKJADO7tJ0ZiO7uzm6hUOBOGjQtpnGSdT2mMCpt"}', 'pending', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-6798-7b9a-8741-25847dc8559d', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67a7-733b-9587-b3cb36a87a93.00000002', 'actor', 'effect/main/send', '{"actor":{"type":"main","id":"pending sent"},"params":null}', 'pending', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-67a7-733b-9587-b3cb36a87a93', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67a9-74ef-a7f0-eb810e4d10b1.00000002', 'actor', 'task/main/pay', '{"actor":{"type":"main","id":"pending paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'pending', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-67a9-74ef-a7f0-eb810e4d10b1', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67bd-74dc-8036-6559aa303a35', 'shop', 'live', '{"Label":"live new"}', 'processing', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-67bd-74a7-9579-b7988e88916a', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'ZLSSRDWYRRMZSRXKDRONMIVNSI', 'C4QBJ2F4QG5KPLDMN6NEJIVJZJ', '2026-03-01 12:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my live', 'shop', 'live', '{"Label":"live chosen"}', 'processing', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-67be-7d1e-bfc2-549c14438835', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'ZLSSRDWYRRMZSRXKDRONMIVNSI', 'C4QBJ2F4QG5KPLDMN6NEJIVJZJ', '2026-03-01 12:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67c3-7ec9-9e3c-83e141177a65.00000002', 'actor', 'effect/live/send', '{"actor":{"type":"live","id":"live sent"},"params":null}', 'processing', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-67c3-7ec9-9e3c-83e141177a65', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'Y3HSCE6XM4DSCOMKR5YDJJWZSG', '7A7PSVQYXAUS3AXPM6WMCWE42T', '2026-03-01 12:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67ca-7016-b32f-20bb209d5127.00000002', 'actor', 'task/live/pay', '{"actor":{"type":"live","id":"live paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'processing', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-67ca-7016-b32f-20bb209d5127', NULL, '2026-03-01 12:00:00+00', NULL, '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'Y3HSCE6XM4DSCOMKR5YDJJWZSG', '7A7PSVQYXAUS3AXPM6WMCWE42T', '2026-03-01 12:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-67ff-74cc-bee2-37de745cb22e', 'shop', 'dead', '{"Label":"dead new"}', 'processing', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-67ff-748d-a50e-0f5a6b245947', NULL, '2026-03-01 11:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, 'IK5PALP7RQGFFQK5KBJSZPGMCF', 'SVIFFYZDQWCD6PWXZQL5NUPC2C', '2026-03-01 11:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('my dead', 'shop', 'dead', '{"Label":"dead chosen"}', 'processing', 0, '{"kind":"exponential","max_attempts":20,"initial":1000000000,"factor":3,"max":18000000000000,"jitter":0.2}', 20, 0, 0, NULL, '01a1e358-6800-7b52-91e3-8138876392aa', NULL, '2026-03-01 11:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, 'IK5PALP7RQGFFQK5KBJSZPGMCF', 'SVIFFYZDQWCD6PWXZQL5NUPC2C', '2026-03-01 11:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6805-7841-b050-9ca48f597385.00000002', 'actor', 'effect/dead/send', '{"actor":{"type":"dead","id":"dead sent"},"params":null}', 'processing', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-6805-7841-b050-9ca48f597385', NULL, '2026-03-01 11:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, '5LNRAHAF3J5ADM3ECZ33XVMP6K', 'QZXA5XJQGQYRENXIBH7MHS2YP5', '2026-03-01 11:00:30+00', NULL);
INSERT INTO perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, error, unit_id, trace, created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at, batch_limit) VALUES ('01a1e358-6809-77c1-a606-44b469871aee.00000002', 'actor', 'task/dead/pay', '{"actor":{"type":"dead","id":"dead paid"},"path":"0.(machine).paying","generation":2,"params":null}', 'processing', 0, '{"kind":"fixed","max_attempts":2,"initial":10800000000000}', 2, 0, 0, NULL, '01a1e358-6809-77c1-a606-44b469871aee', NULL, '2026-03-01 11:00:00+00', NULL, '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', NULL, '5LNRAHAF3J5ADM3ECZ33XVMP6K', 'QZXA5XJQGQYRENXIBH7MHS2YP5', '2026-03-01 11:00:30+00', NULL);


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: imports; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: instances; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5c9a-7dc6-beb3-0a9dd4cba4b1', 'order', 1, 'begin', '{"Label":"done"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 08:00:00+00', NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5c9b-7428-848c-be2e0e080c71', 'order', 1, 'begin', '{"Label":"cancelled"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 08:00:00+00', NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5c99-7e3a-b5b9-15c0a4288414', 'order', 1, 'begin', '{"Label":"failed"}', 'main', 0, 1, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, 'refused failed, attempt 0', NULL, '2026-03-01 08:00:00+00', NULL, false, 1, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5dc5-7ba5-a402-175f2ec81822', 'order', 1, 'begin', '{"Label":"ready second"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, 'key', NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5d60-7443-8dd9-3acbb6fa6c05', 'order', 1, 'begin', '{"Label":"retrying"}', 'main', 0, 1, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 14:00:00+00', NULL, 'refused retrying, attempt 0', NULL, '2026-03-01 11:00:00+00', NULL, false, 1, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5d68-7013-8c19-c837595a79c8', 'order', 1, 'paid', '{"Label":"awaiting signal"}', 'main', 0, 0, 0, '["paid"]', false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', '["paid"]', false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5d68-7716-bf26-8b8fe8f685db', 'order', 1, 'paid', '{"Label":"awaiting timeout"}', 'main', 0, 0, 0, '["paid"]', false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, 'order', 'one', 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', '["paid"]', false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5d70-7937-8b3c-0b83477ffc22', 'order', 1, 'paid', '{"Label":"awaiting deadline"}', 'main', 0, 0, 0, '["paid"]', false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', '2026-03-01 16:00:00+00', NULL, NULL, '2026-03-01 11:00:00+00', '["paid"]', false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('0195a000-0000-7000-8000-00000000abcd', 'order', 1, 'join', '{"Label":"parent"}', 'main', 0, 0, 0, NULL, false, NULL, false, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5d8e-7460-b08d-f9295902e2c9', 'order', 1, 'paid', '{"Label":"awaiting first"}', 'main', 0, 0, 0, '["paid"]', false, NULL, false, 0, NULL, NULL, NULL, NULL, 'key', NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', '["paid"]', false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5dec-7643-ad8a-e086f14685e6', 'part', 1, 'begin', '{"Label":"done child"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, '0195a000-0000-7000-8000-00000000abcd', 1, 0, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-5dec-764c-9b45-d5f414e8748f', 'part', 1, 'end', '{"Label":"waiting child"}', 'main', 0, 0, 0, '["go"]', false, NULL, false, 0, NULL, '0195a000-0000-7000-8000-00000000abcd', 1, 1, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', '["go"]', false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-6613-7ec9-a13d-459ad512598d', 'order', 1, 'begin', '{"Label":"poison instance"}', 'poison instance', 0, 0, 2, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 00:00:00+00', NULL, 'process was lost while the instance ran', NULL, '2026-02-28 16:00:00+00', NULL, false, 0, 1, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-6797-7593-99d4-51cdfe79595d', 'order', 1, 'begin', '{"$sealed":"v1","key":"first","data":"+kByP5xiI1N8J3tu/xORghhW5jNIxtVe/UsRwQwrwoiYhv3hDSePB0MupejzSsYlzac6VA=="}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 12:00:00+00', NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-67a0-71a4-891f-46db217fbef3', 'order', 1, 'begin', '{"Label":"ready"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 12:00:00+00', NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-67a1-734f-8ece-64b19cca2640', 'order', 1, 'begin', '{"Label":"scheduled"}', 'main', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 14:00:00+00', NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-67c0-7f03-89ce-f04cd614770c', 'order', 1, 'begin', '{"Label":"live"}', 'live', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 12:00:00+00', NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL, false, 0, NULL, NULL, NULL);
INSERT INTO perdure.instances (id, fsm, version, step, state, queue, priority, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped, parent_id, parent_fanout, ordinal, partition_key, unique_name, unique_key, unique_scope, due_at, deadline_at, error, trace, created_at, awaited, rerun, failures, batch_limit, cancel_reason, wait) VALUES ('01a1e358-6802-7ab1-8ce7-27fe1d449192', 'order', 1, 'begin', '{"Label":"dead"}', 'dead', 0, 0, 0, NULL, false, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, '2026-03-01 11:00:00+00', NULL, NULL, NULL, '2026-03-01 11:00:00+00', NULL, false, 0, NULL, NULL, NULL);


--
-- Data for Name: interrupts; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: leases; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.leases (token, seq, worker, queue, alone, expires_at, ids, claimed_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-67dc-78b2-8d81-f56fb71f04e8', 7, '01a1e358-67bd-7156-8e81-d10452b1320f', 'live', false, '2026-03-01 12:00:30+00', '{01a1e358-67c0-7f03-89ce-f04cd614770c}', '2026-03-01 12:00:00+00');
INSERT INTO perdure.leases (token, seq, worker, queue, alone, expires_at, ids, claimed_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-681d-76e8-a536-b9f29bb3c062', 8, '01a1e358-67ff-7118-938c-bad963f9b236', 'dead', false, '2026-03-01 11:00:30+00', '{01a1e358-6802-7ab1-8ce7-27fe1d449192}', '2026-03-01 11:00:00+00');


--
-- Data for Name: machines; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: migrations; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (1, 'foundation', '297d742769eaa0f71ec947a84d6f60659ed4ac44a324e7eab553377bbbed97c1', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (2, 'hooks', 'c9b90c4c260a2efbc0c25d864f3c83579d201fae7f237f918d276c1e028d06b6', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (3, 'instances', '7f0a9894d7d068254887b1bcd38293ccf3af67f0b2f0a1baff912402777b210a', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (4, 'tasks', 'cab317043bc14f88145c8198c2fca0c194a3e935d48f4b015d2772c7ee4f02cf', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (5, 'definitions', 'b736cefe7763fdd8b24d45c547b491c7270fb3d7b38749433c1f68f4c12a0bfc', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (6, 'alarms', '863633be62a02743f23e47c62a144de58a330590e0a1ea0f75c65cc34a7e6eb2', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (7, 'actors', 'c19899c4cae4fe9d679ab2c971cd289fdcb83289f46412f89c58fedf2418e272', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (8, 'server', '2ac5d0ea75b4a08ed5b372ed0a20da0b11b05735ac8615a3940a9d53a52504ed', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (9, 'access', '6bf90815afef8c4f8bdeab8d7dc2a2b03bf3098df218a45cc06efb31e3a28412', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (10, 'remote', 'c14ef6dc146790a6f497336069837d4f215260e9d2aa80dcfe2f7e22f2af31f6', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (11, 'history', '36c7c388d293b9013da240eff3440d1274ed87c6536a7498edfa433c348775c9', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (12, 'attempts', '4d76ff5b819580eceab3c4beb104df3f0526f0deee24f6dd405e187b156e1c15', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (13, 'reversible_ends', '958a4b5123164a8151e7e495e84a710de8acc5b5165255cce7b75d6cf79c44ef', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (14, 'tree_ends', '0e0cc1a1f46e24a1a8e84ec4e399d5530fe592cfd74ab71852ea3500b39ee728', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (16, 'suspects', '29c8f9ee227af0cf0302c167a786849581f149bcf88c27c857d27eb8baa5fd51', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (17, 'retention', 'd31416ca4e26952640fc390b0d75917cd283ab434307d548221e7d5d074d6fc9', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (19, 'finite_times', '996ad2705edcf4b80d7b3c78289f580356cc50b45062fb61858a56045739e1af', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (20, 'task_suspects', '5a6427c063b3cb7d7f97cfb93255d9ae105ecc13f4f9272daba4120f0117b55b', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (21, 'task_returns', '7b2c4afdf5cc28fbf5a4235aade6acdcef025093c2492563b74e81f0c05ab9c9', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (22, 'task_bounds', '78eb0f5ad30d3e8861403bd987e94f61d3de2d068d49be548a06b4249360feab', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (24, 'task_capability', '954fb8243203ea836a4f852076adcf8cd6c91da5be0a130cec360e3e16aa4346', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (25, 'actor_tokens', '8f37b75bf9df4d9ca44d89b7225838f65a0d2aef4e38560519ac793fff997156', '2026-03-01 08:00:00+00');
INSERT INTO perdure.migrations (version, name, checksum, applied_at) VALUES (26, 'audit', '8730fc05d151c710104b653134d9a6f8465c5a345c75897902003e3b51f035db', '2026-03-01 08:00:00+00');


--
-- Data for Name: nodes; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: outbox; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.outbox (versionstamp, unit_id, payload, ref_map, created_at) VALUES ('\x000000000000000000010000', '01a1e358-5c81-7cf3-8ef0-2e529aa8ce42', '{"json":{"version":1,"mutations":[{"op":"create","schema":"bank","namespace":"bank","table":"accounts","externalId":"ada","versionstamp":"000000000000000000010000","values":{"balance":100,"owner":"Ada"}},{"op":"create","schema":"bank","namespace":"bank","table":"accounts","externalId":"bea","versionstamp":"000000000000000000010001","values":{"balance":0,"owner":"Bea"}}]}}', NULL, '2026-03-01 08:00:00+00');
INSERT INTO perdure.outbox (versionstamp, unit_id, payload, ref_map, created_at) VALUES ('\x000000000000000000020000', '01a1e358-5c83-7b0d-abd5-65cc3e97cdc9', '{"json":{"version":1,"mutations":[{"op":"update","schema":"bank","namespace":"bank","table":"accounts","externalId":"bea","versionstamp":"000000000000000000020000","set":{"balance":7}}]}}', NULL, '2026-03-01 08:00:00+00');


--
-- Data for Name: outbox_clock; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.outbox_clock (id, incarnation, counter) VALUES (1, 0, 2);


--
-- Data for Name: outbox_consumers; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: outbox_incarnations; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: partition_heads; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.partition_heads (key, head, tail) VALUES ('key', '01a1e358-5d8e-7460-b08d-f9295902e2c9', 1);


--
-- Data for Name: partition_waiting; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.partition_waiting (key, seq, id) VALUES ('key', 1, '01a1e358-5dc5-7ba5-a402-175f2ec81822');


--
-- Data for Name: ready; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.ready (queue, suspect, priority, due_at, id) VALUES ('main', false, 0, '2026-03-01 14:00:00+00', '01a1e358-5d60-7443-8dd9-3acbb6fa6c05');
INSERT INTO perdure.ready (queue, suspect, priority, due_at, id) VALUES ('main', false, 0, '2026-03-01 12:00:00+00', '01a1e358-6797-7593-99d4-51cdfe79595d');
INSERT INTO perdure.ready (queue, suspect, priority, due_at, id) VALUES ('main', false, 0, '2026-03-01 12:00:00+00', '01a1e358-67a0-71a4-891f-46db217fbef3');
INSERT INTO perdure.ready (queue, suspect, priority, due_at, id) VALUES ('main', false, 0, '2026-03-01 14:00:00+00', '01a1e358-67a1-734f-8ece-64b19cca2640');


--
-- Data for Name: remote_definitions; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: samples; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: schedules; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.schedules (name, fsm, version, spec, next_at, last_at, paused, updated_at) VALUES ('hourly', 'order', 1, '{"schedule":{"every":"1h0m0s"},"missed":"once","max_missed":100,"start":{"ID":"","FSM":"order","Version":1,"Step":"begin","State":"{\"Label\":\"tick\"}","Queue":"main","Priority":0,"Parent":null,"Fanout":null,"Ordinal":null,"At":null,"Delay":0,"Deadline":null,"Partition":null,"UniqueName":null,"UniqueKey":null,"UniqueScope":0,"Trace":null}}', '2026-03-01 13:00:00+00', NULL, false, '2026-03-01 12:00:00+00');
INSERT INTO perdure.schedules (name, fsm, version, spec, next_at, last_at, paused, updated_at) VALUES ('paused', 'order', 1, '{"schedule":{"every":"1h0m0s"},"missed":"once","max_missed":100,"start":{"ID":"","FSM":"order","Version":1,"Step":"begin","State":"{\"Label\":\"tick\"}","Queue":"main","Priority":0,"Parent":null,"Fanout":null,"Ordinal":null,"At":null,"Delay":0,"Deadline":null,"Partition":null,"UniqueName":null,"UniqueKey":null,"UniqueScope":0,"Trace":null}}', '2026-03-01 13:00:00+00', NULL, true, '2026-03-01 12:00:00+00');


--
-- Data for Name: schemas; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.schemas (name, description, updated_at) VALUES ('bank', '{"name":"bank","tables":[{"name":"accounts","columns":[{"name":"owner","type":"string","max":255},{"name":"balance","type":"int","default":0}],"indexes":[{"columns":["owner"],"unique":true}]}]}', '2026-03-01 08:00:00+00');


--
-- Data for Name: settings; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.settings (name, value) VALUES ('outbox.pruned_through', '000000000000000000000000');


--
-- Data for Name: signal_keys; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: signals; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: snapshots; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'done sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'failed paid', 3, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"refused","nodes":["(machine)","(machine).refused"],"context":{},"historyValue":{},"children":{},"sequence":2}', '75c05719b602136458fa6c0c5a6ae4be96fb8e924f95a9bd0ab0bfc4fc42f422');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'failed sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'stopped', 3, '{"status":"stopped","generation":1,"phase":"stopped","armed":true,"input":{"caller":{"id":"generator","type":"service"}},"value":"waiting","nodes":["(machine)","(machine).waiting"],"context":{},"historyValue":{},"children":{},"sequence":2}', '7ec14706f55129e804002701dc59a093373f51e883727e366495d349f4ee888f');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'done paid', 3, '{"status":"done","generation":1,"phase":"stopped","input":{"caller":{"id":"generator","type":"service"}},"value":"end","nodes":["(machine)","(machine).end"],"context":{},"historyValue":{},"children":{},"sequence":2}', '00194b2ca1ed37425a4c91d607194c139d1064a04969f7df6cb64ea0d3e81945');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'waiting', 2, '{"status":"active","generation":1,"phase":"running","armed":true,"input":{"caller":{"id":"generator","type":"service"}},"value":"waiting","nodes":["(machine)","(machine).waiting"],"context":{},"historyValue":{},"children":{},"sequence":2}', '543dcb0b375f1acfefaa82b21d5b9b315044d0d1c501ef1f7d9ef96dbd2d981d');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'retrying sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'retrying paid', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"paying","nodes":["(machine)","(machine).paying"],"context":{},"historyValue":{},"children":{"0.(machine).paying":{"snapshot":{"status":"active","generation":2,"phase":"running"},"src":"pay","syncSnapshot":false}},"sequence":2}', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'pending secret', 2, '{"$sealed":"v1","key":"first","data":"buWXmkc++Ipa4PD7O7040g6lF9X06Ki7+14/UJcY6bDhOGZBPuVqjIvBCqar6ao9gEiCQ7losRIW8a/U1dRKyxdQChX7rDjVlIKB+LNmCa/X8FTmj1Aec/P8BBomjHiwUVaIL5ZAEzNdDbLeQIgY46Cr0iVX/twkHjiinjFyQHWOkoA8E/v+NjEbMpk48UQGmh4CBSDLoKNghNX8w0LPw+aVnRHez3d1SyWWoMKOCBtV3OUldQ9JPD8vxYFCw87iLW+u3oaXDdgtOZlHYBETMjyko32re0gp4/1sQq1XJEDvzLjfhB8RvS/6OkHtV67uMW+Mv5FGLchbkH6FqMZtMWdgipgDrNVaOHX4f7muFPE8BtXWPq/Vj5U6w8UBf1SwsHT2Xs85aWTVOhLexCVhYdBfDmFwPysv32SLKd4URCnylcWdNuTKNKCvjpAqwHBtxM7iCmGglTkZGlNSmv5uvpSYEINMcvu3OBKGUSxxfo+VsA=="}', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'pending sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('main', 'pending paid', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"paying","nodes":["(machine)","(machine).paying"],"context":{},"historyValue":{},"children":{"0.(machine).paying":{"snapshot":{"status":"active","generation":2,"phase":"running"},"src":"pay","syncSnapshot":false}},"sequence":2}', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('live', 'live sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('live', 'live paid', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"paying","nodes":["(machine)","(machine).paying"],"context":{},"historyValue":{},"children":{"0.(machine).paying":{"snapshot":{"status":"active","generation":2,"phase":"running"},"src":"pay","syncSnapshot":false}},"sequence":2}', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('dead', 'dead sent', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"sent","nodes":["(machine)","(machine).sent"],"context":{},"historyValue":{},"children":{},"sequence":2}', 'a3c2a46eeaec039d11149a28195dead0b2033720759f851c3ed476cec3331608');
INSERT INTO perdure.snapshots (actor_type, actor_id, sequence, snapshot, checksum) VALUES ('dead', 'dead paid', 2, '{"status":"active","generation":1,"phase":"running","input":{"caller":{"id":"generator","type":"service"}},"value":"paying","nodes":["(machine)","(machine).paying"],"context":{},"historyValue":{},"children":{"0.(machine).paying":{"snapshot":{"status":"active","generation":2,"phase":"running"},"src":"pay","syncSnapshot":false}},"sequence":2}', '08c97374b1218eba24c0614c6085fa47226991020f03e2edc9185428121f924c');


--
-- Data for Name: tokens; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: transitions; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5c99-7e3a-b5b9-15c0a4288414', 1, 'begin', 'replay', NULL, 0, 0, 'refused failed, attempt 0', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5c9a-7dc6-beb3-0a9dd4cba4b1', 2, 'begin', 'done', NULL, 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5c99-7e3a-b5b9-15c0a4288414', 3, 'begin', 'fail', NULL, 1, 0, 'refused failed, attempt 1', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5d68-7013-8c19-c837595a79c8', 4, 'begin', 'await', 'paid', 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5d68-7716-bf26-8b8fe8f685db', 5, 'begin', 'await', 'paid', 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5d70-7937-8b3c-0b83477ffc22', 6, 'begin', 'await', 'paid', 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('0195a000-0000-7000-8000-00000000abcd', 7, 'begin', 'spawn', 'join', 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5d8e-7460-b08d-f9295902e2c9', 8, 'begin', 'await', 'paid', 0, 0, NULL, '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');
INSERT INTO perdure.transitions (instance_id, seq, step, outcome, next, attempt, crashes, error, worker, began_at, ended_at) OVERRIDING SYSTEM VALUE VALUES ('01a1e358-5d60-7443-8dd9-3acbb6fa6c05', 9, 'begin', 'replay', NULL, 0, 0, 'refused retrying, attempt 0', '01a1e358-5c81-7adf-9aea-d4e047843fe6', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00');


--
-- Data for Name: tree_ends; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: uniques; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.uniques (name, key, id) VALUES ('order', 'one', '01a1e358-5d68-7716-bf26-8b8fe8f685db');


--
-- Data for Name: unrouted; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: waiting; Type: TABLE DATA; Schema: perdure; Owner: perdure
--

INSERT INTO perdure.waiting (id, names, deadline_at) VALUES ('01a1e358-5d68-7013-8c19-c837595a79c8', '{paid}', '2026-03-01 17:00:00+00');
INSERT INTO perdure.waiting (id, names, deadline_at) VALUES ('01a1e358-5d68-7716-bf26-8b8fe8f685db', '{paid}', '2026-03-01 17:00:00+00');
INSERT INTO perdure.waiting (id, names, deadline_at) VALUES ('01a1e358-5d70-7937-8b3c-0b83477ffc22', '{paid}', '2026-03-01 17:00:00+00');
INSERT INTO perdure.waiting (id, names, deadline_at) VALUES ('01a1e358-5d8e-7460-b08d-f9295902e2c9', '{paid}', '2026-03-01 17:00:00+00');
INSERT INTO perdure.waiting (id, names, deadline_at) VALUES ('01a1e358-5dec-764c-9b45-d5f414e8748f', '{go}', NULL);


--
-- Data for Name: waits; Type: TABLE DATA; Schema: perdure; Owner: perdure
--



--
-- Data for Name: task; Type: TABLE DATA; Schema: queues; Owner: perdure_owner
--

INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (3, 'main', '{"Label": "cancelled", "task_type": "main", "db_function": "shop.refuse"}', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', NULL, 'cancelled', 0, 0, NULL, false, NULL, NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (2, 'db_function', '{"Label": "failed", "task_type": "db_function", "db_function": "shop.refuse"}', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', 'failed', 1, 0, NULL, false, NULL, NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (1, 'main', '{"Label": "completed", "task_type": "main", "db_function": "shop.refuse"}', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', '2026-03-01 08:00:00+00', 'completed', 1, 0, NULL, false, NULL, NULL, NULL, NULL, '2026-03-01 08:00:00+00', NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (4, 'main', '{"Label": "pending", "task_type": "main", "db_function": "shop.refuse"}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'pending', 0, 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (5, 'main', '{"Label": "scheduled", "task_type": "main", "db_function": "shop.refuse"}', '2026-03-01 12:00:00+00', '2026-03-01 14:00:00+00', NULL, 'pending', 0, 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (7, 'live', '{"Label": "live", "task_type": "live", "db_function": "shop.refuse"}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 'processing', 0, 0, NULL, false, NULL, 'JRQHNSZ7JSW4YCZSG2S7TF2QJG', 'bc35b217-ab9d-4260-a3ca-f12a81e5e26e', '2026-03-01 12:00:30+00', NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (8, 'dead', '{"Label": "dead", "task_type": "dead", "db_function": "shop.refuse"}', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', 'processing', 0, 0, NULL, false, NULL, 'H4IO7SQXMWUNTVO3UZGMEIKA4Q', '90771049-8d04-48bf-adf5-e916ec569acc', '2026-03-01 11:00:30+00', NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (9, 'email', '{"attempt": 1, "task_type": "email", "error_handler": "comms.record_email_failure", "before_handler": "comms.get_email_payload", "success_handler": "comms.record_email_success", "send_email_task_id": 1}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', NULL, 'pending', 0, 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (10, 'db_function', '{"idle_runs": 0, "run_count": 1, "task_type": "db_function", "db_function": "comms.send_email_supervisor", "send_email_task_id": 1}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:05+00', NULL, 'pending', 0, 0, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO queues.task (task_id, task_type, payload, enqueued_at, scheduled_at, dequeued_at, status, attempts, crashes, outcome, unrouted, trace, worker, token, lease_expires_at, finished_at, batch_limit) OVERRIDING SYSTEM VALUE VALUES (6, 'db_function', '{"task_type": "db_function", "db_function": "comms.send_email_supervisor", "send_email_task_id": 1}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00', 'completed', 1, 0, NULL, false, NULL, NULL, NULL, NULL, '2026-03-01 12:00:00+00', NULL);


--
-- Data for Name: error; Type: TABLE DATA; Schema: queues; Owner: perdure_owner
--

INSERT INTO queues.error (error_id, task_id, error_message, created_at) OVERRIDING SYSTEM VALUE VALUES (1, 2, 'ERROR: function shop.refuse is not allowed for tasks (SQLSTATE 42501)', '2026-03-01 08:00:00+00');


--
-- Name: message_message_id_seq; Type: SEQUENCE SET; Schema: comms; Owner: perdure_owner
--

SELECT pg_catalog.setval('comms.message_message_id_seq', 1, true);


--
-- Name: send_email_task_send_email_task_id_seq; Type: SEQUENCE SET; Schema: comms; Owner: perdure_owner
--

SELECT pg_catalog.setval('comms.send_email_task_send_email_task_id_seq', 1, true);


--
-- Name: send_sms_task_send_sms_task_id_seq; Type: SEQUENCE SET; Schema: comms; Owner: perdure_owner
--

SELECT pg_catalog.setval('comms.send_sms_task_send_sms_task_id_seq', 1, false);


--
-- Name: leases_seq_seq; Type: SEQUENCE SET; Schema: perdure; Owner: perdure
--

SELECT pg_catalog.setval('perdure.leases_seq_seq', 8, true);


--
-- Name: signals_seq_seq; Type: SEQUENCE SET; Schema: perdure; Owner: perdure
--

SELECT pg_catalog.setval('perdure.signals_seq_seq', 1, false);


--
-- Name: transitions_seq_seq; Type: SEQUENCE SET; Schema: perdure; Owner: perdure
--

SELECT pg_catalog.setval('perdure.transitions_seq_seq', 9, true);


--
-- Name: tree_ends_seq_seq; Type: SEQUENCE SET; Schema: perdure; Owner: perdure
--

SELECT pg_catalog.setval('perdure.tree_ends_seq_seq', 1, false);


--
-- Name: error_error_id_seq; Type: SEQUENCE SET; Schema: queues; Owner: perdure_owner
--

SELECT pg_catalog.setval('queues.error_error_id_seq', 1, true);


--
-- Name: task_task_id_seq; Type: SEQUENCE SET; Schema: queues; Owner: perdure_owner
--

SELECT pg_catalog.setval('queues.task_task_id_seq', 10, true);


--
-- PostgreSQL database dump complete
--


