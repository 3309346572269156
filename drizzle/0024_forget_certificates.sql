-- The copy of a custom domain's certificate, with its key, goes with the domain. Wildcards' are the clock's.
CREATE TRIGGER certificates_of_removed_domains AFTER DELETE ON domains
WHEN OLD.verified_at IS NOT NULL AND OLD.name NOT LIKE '*.%'
BEGIN
  DELETE FROM certificates WHERE id = OLD.name;
END;
--> statement-breakpoint
CREATE TRIGGER certificates_of_lost_domains AFTER UPDATE OF verified_at ON domains
WHEN OLD.verified_at IS NOT NULL AND NEW.verified_at IS NULL AND OLD.name NOT LIKE '*.%'
BEGIN
  DELETE FROM certificates WHERE id = OLD.name;
END;
