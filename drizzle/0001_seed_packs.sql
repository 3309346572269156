-- The packs a new installation offers; the operator changes them at will.
INSERT INTO packs (id, kind, name, price_cents, currency, memory_mb, cpu_milli, pids, disk_gb, active) VALUES
  ('pack_001k0000000000000000000001', 'site', 'Starter', 500, 'usd', 256, 500, 256, 2, 1),
  ('pack_001k0000000000000000000002', 'site', 'Standard', 1200, 'usd', 512, 1000, 512, 5, 1),
  ('pack_001k0000000000000000000003', 'site', 'Pro', 2900, 'usd', 2048, 2000, 1024, 20, 1),
  ('pack_001k0000000000000000000011', 'database', 'Starter', 700, 'usd', 256, 500, 256, 5, 1),
  ('pack_001k0000000000000000000012', 'database', 'Standard', 1900, 'usd', 1024, 1000, 512, 20, 1),
  ('pack_001k0000000000000000000013', 'database', 'Pro', 4900, 'usd', 4096, 2000, 1024, 80, 1);
