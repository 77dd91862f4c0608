import { Link } from '@tanstack/react-router';
import { Boxes, Check, Server, Target } from 'lucide-react';
import type { ReactNode } from 'react';
import { buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Panel } from '../../parts/panel.tsx';
import { opensAddMachine } from '../enrollment/opens-add-machine.ts';

/** The setup of a fleet: its agents, modules, and assignments. */
interface Progress {
  readonly isAdmin: boolean;
  readonly pending: number;
  readonly approved: number;
  readonly modules: number;
  readonly assignments: number;
}

interface Step {
  readonly title: string;
  readonly description: string;
  readonly done: boolean;
  readonly icon: ReactNode;
  readonly to: string;
  /** History state that the link sets, such as the one that opens Add machine. */
  readonly state?: object;
  readonly search?: object;
  readonly action: string;
}

function stepsOf({ isAdmin, pending, approved, modules, assignments }: Progress): readonly Step[] {
  const enrolled = approved + pending > 0;
  return [
    {
      title: 'Connect the first machine',
      description: isAdmin
        ? 'One command, run on the machine, installs the agent and connects it.'
        : 'Ask an admin for the command that installs and connects the agent.',
      done: enrolled,
      icon: <Server className="size-4" />,
      to: '/agents',
      ...(isAdmin && !enrolled ? { state: opensAddMachine() } : {}),
      action: isAdmin ? 'Add machine' : 'See agents',
    },
    {
      title: 'Approve it',
      description: 'Verify its identity and give it a name. Approved agents can receive modules and commands.',
      done: approved > 0,
      icon: <Check className="size-4" />,
      to: '/agents',
      search: { status: 'pending' },
      action: 'Approve',
    },
    {
      title: 'Write a module',
      description: 'A module declares files, packages, and services. Plan it first: a plan changes nothing.',
      done: modules > 0,
      icon: <Boxes className="size-4" />,
      to: '/modules/new',
      action: 'New module',
    },
    {
      title: 'Assign it',
      description:
        'An assignment adds modules to the desired state of all current and future agents that match a selector.',
      done: assignments > 0,
      icon: <Target className="size-4" />,
      to: '/assignments/new',
      action: 'New assignment',
    },
  ];
}

export function FirstSteps(progress: Progress) {
  const steps = stepsOf(progress);
  const next = steps.findIndex(({ done }) => !done);
  return (
    <Panel title="Get started" flush>
      <ol className="divide-y">
        {steps.map(({ title, description, done, icon, to, state, search, action }, index) => (
          <li key={title} className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
            <span
              aria-hidden="true"
              className={classNames(
                'flex size-8 shrink-0 items-center justify-center rounded-full',
                done
                  ? 'bg-good-soft text-good'
                  : index === next
                    ? 'bg-accent-soft text-accent'
                    : 'bg-raised text-muted',
              )}
            >
              {done ? <Check className="size-4" /> : icon}
            </span>
            <div className="min-w-0 flex-1 basis-60">
              <p className={classNames('font-medium text-sm', done && 'text-muted')}>
                {title}
                {done && <span className="sr-only"> (done)</span>}
              </p>
              {!done && <p className="text-muted text-sm">{description}</p>}
            </div>
            {!done && (
              <Link
                to={to as '/'}
                {...(state === undefined ? {} : { state })}
                {...(search === undefined ? {} : { search: search as never })}
                className={buttonClasses(index === next ? 'primary' : 'plain')}
              >
                {action}
              </Link>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
