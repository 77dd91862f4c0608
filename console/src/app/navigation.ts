import {
  Bell,
  Boxes,
  CalendarClock,
  FileClock,
  GitCompareArrows,
  KeyRound,
  LayoutDashboard,
  ListChecks,
  type LucideIcon,
  Megaphone,
  PlaySquare,
  Server,
  Settings,
  Shapes,
  SquareTerminal,
  Target,
  Ticket,
  Users,
} from 'lucide-react';

/** A page, as listed in the menu, the `g` key sequences, the command palette, and the help. */
export interface Destination {
  readonly path: string;
  readonly label: string;
  readonly icon: LucideIcon;
  /** Second key of the sequence that starts with `g`. */
  readonly key: string;
}

export const sections: readonly { readonly label: string; readonly destinations: readonly Destination[] }[] = [
  {
    label: 'Fleet',
    destinations: [
      { path: '/', label: 'Overview', icon: LayoutDashboard, key: 'h' },
      { path: '/agents', label: 'Agents', icon: Server, key: 'a' },
      { path: '/out-of-sync', label: 'Out of sync', icon: GitCompareArrows, key: 'd' },
    ],
  },
  {
    label: 'Desired state',
    destinations: [
      { path: '/modules', label: 'Modules', icon: Boxes, key: 'm' },
      { path: '/kinds', label: 'Kinds', icon: Shapes, key: 'k' },
      { path: '/assignments', label: 'Assignments', icon: Target, key: 's' },
      { path: '/runs', label: 'Runs', icon: PlaySquare, key: 'r' },
      { path: '/operations', label: 'Operations', icon: ListChecks, key: 'o' },
    ],
  },
  {
    label: 'Access',
    destinations: [
      { path: '/terminals', label: 'Terminals', icon: SquareTerminal, key: 't' },
      { path: '/secrets', label: 'Secrets', icon: KeyRound, key: 'x' },
    ],
  },
  {
    label: 'Monitoring',
    destinations: [
      { path: '/windows', label: 'Maintenance windows', icon: CalendarClock, key: 'w' },
      { path: '/notifications', label: 'Notifications', icon: Bell, key: 'n' },
      { path: '/channels', label: 'Channels', icon: Megaphone, key: 'l' },
      { path: '/audit', label: 'Audit log', icon: FileClock, key: 'u' },
    ],
  },
  {
    label: 'Administration',
    destinations: [
      { path: '/operators', label: 'Operators', icon: Users, key: 'p' },
      { path: '/enrolment', label: 'Enrollment', icon: Ticket, key: 'e' },
      { path: '/settings', label: 'Settings', icon: Settings, key: ',' },
    ],
  },
];

export const destinations: readonly Destination[] = sections.flatMap((section) => section.destinations);
