-- Seller and buyer as they are when an invoice is issued, whichever statement issues it.
CREATE TRIGGER `invoices_parties` AFTER INSERT ON `invoices` BEGIN
  UPDATE invoices SET parties = json_object(
    'brandName', (SELECT brand ->> '$.name' FROM installation_settings WHERE id = 1),
    'seller', json((SELECT seller FROM installation_settings WHERE id = 1)),
    'buyer', json((SELECT details FROM billing_details WHERE account_id = NEW.account_id)))
  WHERE id = NEW.id;
END;
