UPDATE `accounts` SET `email_verified` = 1 WHERE `role` = 'operator';
