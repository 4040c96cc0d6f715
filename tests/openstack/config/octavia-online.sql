-- Simulates the heartbeats: amphorae have no agents that report their health, so operating_status would stay OFFLINE.
-- provisioning_status is still set by Octavia. Each update first reads the ids without locks and then locks only those
-- rows; if a row is locked, it is left for the next time, so that Octavia's transactions do not fail because of this.
DELIMITER //
CREATE OR REPLACE EVENT heartbeats ON SCHEDULE EVERY 2 SECOND DO
BEGIN
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
  SET SESSION innodb_lock_wait_timeout = 1;
  UPDATE listener SET operating_status = 'ONLINE' WHERE id IN (SELECT id FROM (
    SELECT id FROM listener
      WHERE provisioning_status = 'ACTIVE' AND enabled = 1 AND operating_status = 'OFFLINE') found);
  UPDATE pool SET operating_status = 'ONLINE' WHERE id IN (SELECT id FROM (
    SELECT id FROM pool
      WHERE provisioning_status = 'ACTIVE' AND enabled = 1 AND operating_status = 'OFFLINE') found);
  -- Members are watched only by a health monitor; without one they are NO_MONITOR, as in a real cloud.
  UPDATE member SET operating_status = 'ONLINE' WHERE id IN (SELECT id FROM (
    SELECT m.id FROM member m JOIN health_monitor h ON h.pool_id = m.pool_id
      WHERE m.provisioning_status = 'ACTIVE' AND m.enabled = 1 AND h.enabled = 1
        AND m.operating_status IN ('OFFLINE', 'NO_MONITOR')) found);
  UPDATE load_balancer SET operating_status = 'ONLINE' WHERE id IN (SELECT id FROM (
    SELECT l.id FROM load_balancer l
      WHERE l.provisioning_status = 'ACTIVE' AND l.enabled = 1 AND l.operating_status = 'OFFLINE'
        AND EXISTS (SELECT 1 FROM listener x WHERE x.load_balancer_id = l.id)) found);
END//
DELIMITER ;
