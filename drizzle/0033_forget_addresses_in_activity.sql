-- They outlived the accounts that were deleted. None has been written since the audit log hides them.
UPDATE `activity` SET `arguments` = json_set(`arguments`, '$.email', '…')
WHERE instr(`arguments`, '"email"') AND json_type(`arguments`, '$.email') = 'text';
