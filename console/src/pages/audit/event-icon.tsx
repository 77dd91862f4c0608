import type { AuditEvent } from '@muster/protocol/http';
import {
  Boxes,
  CalendarClock,
  FileClock,
  GitCompareArrows,
  HardDrive,
  KeyRound,
  ListChecks,
  LogIn,
  type LucideIcon,
  Megaphone,
  PlaySquare,
  Radar,
  Server,
  ServerCog,
  SquareTerminal,
  Target,
  Ticket,
  Users,
} from 'lucide-react';
import type { Tone } from '../../parts/badge.tsx';
import { eventTone } from '../notifications/event-tones.ts';

/** Icons of the categories of events, the same as those of their pages. */
const icons: Readonly<Record<string, LucideIcon>> = {
  ...{ agent: Server, assignment: Target, audit: FileClock, auth: LogIn, channel: Megaphone, discovery: Radar },
  ...{ disk: HardDrive, drift: GitCompareArrows, enrolment: Ticket, module: Boxes, operator: Users },
  ...{ replica: ServerCog, run: PlaySquare, secret: KeyRound, state: ListChecks, system: ServerCog },
  ...{ terminal: SquareTerminal, window: CalendarClock },
};

const colors: Readonly<Record<Tone, string>> = {
  ...{ good: 'text-good', warn: 'text-warn', bad: 'text-bad', info: 'text-info', neutral: 'text-muted' },
};

/** The icon of an event's category in the color of its severity, which screen readers announce as a word. */
export function EventIcon({ event }: { readonly event: Pick<AuditEvent, 'event_type' | 'severity'> }) {
  const category = event.event_type.split('.')[0] ?? '';
  const Icon = (Object.hasOwn(icons, category) ? icons[category] : undefined) ?? FileClock;
  return (
    <>
      <Icon aria-hidden="true" className={`size-4 shrink-0 ${colors[eventTone(event)]}`} />
      {event.severity !== 'info' && <span className="sr-only">{event.severity}: </span>}
    </>
  );
}
