CREATE TABLE `timer_runs` (
	`id` integer PRIMARY KEY NOT NULL,
	`ran_at` integer NOT NULL
);
