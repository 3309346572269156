ALTER TABLE `sites` ADD `builder` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `install_command` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `output_dir` text;--> statement-breakpoint
ALTER TABLE `sites` ADD `single_page` integer;--> statement-breakpoint
ALTER TABLE `sites` ADD `language_version` text;