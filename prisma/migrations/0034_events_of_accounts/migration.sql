-- Events of groups, swaps, keys, members and invitations. The argument of each trigger is the type of its events.
CREATE FUNCTION note_group_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  g file_group := coalesce(NEW, OLD);
BEGIN
  PERFORM note_event(TG_ARGV[0], g.workspace_id, 'group', g.id::text,
    jsonb_build_object('network', g.network, 'name', g.name, 'isPublic', g.is_public));
  RETURN NULL;
END $$;
CREATE TRIGGER file_group_event_created AFTER INSERT ON file_group FOR EACH ROW
  EXECUTE FUNCTION note_group_event('group.created');
CREATE TRIGGER file_group_event_updated AFTER UPDATE ON file_group FOR EACH ROW
  WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION note_group_event('group.updated');
CREATE TRIGGER file_group_event_deleted AFTER DELETE ON file_group FOR EACH ROW
  EXECUTE FUNCTION note_group_event('group.deleted');

CREATE FUNCTION note_swap_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event('swap.created', NEW.workspace_id, 'swap', NEW.id::text,
    jsonb_build_object('network', NEW.network, 'cid', NEW.cid_v1, 'mappedCid', NEW.mapped_cid));
  RETURN NULL;
END $$;
CREATE TRIGGER swap_event_created AFTER INSERT ON swap FOR EACH ROW EXECUTE FUNCTION note_swap_event();

CREATE FUNCTION note_key_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  k api_key := coalesce(NEW, OLD);
BEGIN
  PERFORM note_event(TG_ARGV[0], k.workspace_id, 'key', k.id::text,
    jsonb_build_object('name', k.name, 'userId', k.user_id, 'scopes', to_jsonb(k.scopes)));
  RETURN NULL;
END $$;
CREATE TRIGGER api_key_event_created AFTER INSERT ON api_key FOR EACH ROW EXECUTE FUNCTION note_key_event('key.created');
CREATE TRIGGER api_key_event_revoked AFTER UPDATE OF revoked_at ON api_key FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL) EXECUTE FUNCTION note_key_event('key.revoked');
CREATE TRIGGER api_key_event_deleted AFTER DELETE ON api_key FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL) EXECUTE FUNCTION note_key_event('key.revoked');

CREATE FUNCTION note_member_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  m membership := coalesce(NEW, OLD);
BEGIN
  PERFORM note_event(TG_ARGV[0], m.workspace_id, 'member', m.user_id::text, jsonb_build_object('role', m.role));
  RETURN NULL;
END $$;
CREATE TRIGGER membership_event_added AFTER INSERT ON membership FOR EACH ROW
  EXECUTE FUNCTION note_member_event('member.added');
CREATE TRIGGER membership_event_updated AFTER UPDATE OF role ON membership FOR EACH ROW
  WHEN (OLD.role <> NEW.role) EXECUTE FUNCTION note_member_event('member.updated');
CREATE TRIGGER membership_event_removed AFTER DELETE ON membership FOR EACH ROW
  EXECUTE FUNCTION note_member_event('member.removed');

CREATE FUNCTION note_invitation_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(TG_ARGV[0], NEW.workspace_id, 'invitation', NEW.id::text,
    jsonb_build_object('role', NEW.role, 'invitedBy', NEW.invited_by, 'acceptedBy', NEW.accepted_by));
  RETURN NULL;
END $$;
CREATE TRIGGER invitation_event_created AFTER INSERT ON invitation FOR EACH ROW
  EXECUTE FUNCTION note_invitation_event('invitation.created');
CREATE TRIGGER invitation_event_accepted AFTER UPDATE OF accepted_at ON invitation FOR EACH ROW
  WHEN (OLD.accepted_at IS NULL AND NEW.accepted_at IS NOT NULL)
  EXECUTE FUNCTION note_invitation_event('invitation.accepted');
CREATE TRIGGER invitation_event_revoked AFTER UPDATE OF revoked_at ON invitation FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
  EXECUTE FUNCTION note_invitation_event('invitation.revoked');
