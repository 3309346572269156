ALTER TABLE `sites` ADD `submodules` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `sites` ADD `lfs` integer DEFAULT false NOT NULL;