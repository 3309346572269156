-- The numbers of invoices: given in the batch of the payment, so there is none twice and none is left out.
UPDATE invoices SET number = n.number
FROM (SELECT id, row_number() OVER (ORDER BY paid_at, id) AS number FROM invoices WHERE paid_at IS NOT NULL) AS n
WHERE n.id = invoices.id;
--> statement-breakpoint
CREATE TRIGGER `invoices_number` AFTER UPDATE OF status ON `invoices`
WHEN NEW.status = 'paid' AND NEW.number IS NULL BEGIN
  UPDATE invoices SET number = (SELECT coalesce(max(number), 0) + 1 FROM invoices) WHERE id = NEW.id;
END;
