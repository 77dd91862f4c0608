import type { AuditEvent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { linkClasses } from '../../parts/class-names.ts';
import { Line } from '../../parts/text.tsx';

type Party = AuditEvent['target'];

/** Returns the path of the page that shows an actor or target, or null if there is none. */
export function pathOf({ type, id, name }: Party): string | null {
  switch (type) {
    case 'agent':
      return `/agents/${encodeURIComponent(name || id)}`;
    case 'module':
      return `/modules/${encodeURIComponent(name || id)}`;
    case 'assignment':
      return `/assignments/${encodeURIComponent(name || id)}`;
    case 'run':
      return `/runs/${encodeURIComponent(id)}`;
    case 'operation':
      return `/operations/${encodeURIComponent(id)}`;
    case 'terminal':
      return `/terminals/${encodeURIComponent(id)}`;
    case 'secret':
      return '/secrets';
    case 'channel':
      return '/channels';
    case 'window':
      return '/windows';
    case 'operator':
      return '/operators';
    case 'enrolment_token':
      return '/enrolment';
    default:
      return null;
  }
}

export function TargetLink({ party }: { readonly party: Party }) {
  const text = party.name || party.id || party.type;
  if (text === '') return <span className="text-muted">–</span>;
  const address = pathOf(party);
  if (address === null) return <Line text={text} />;
  return (
    <Link to={address as '/'} className={linkClasses}>
      <Line text={text} />
    </Link>
  );
}
