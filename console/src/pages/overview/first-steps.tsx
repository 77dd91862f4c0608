import { Link } from '@tanstack/react-router';
import { Boxes, Check, Server, Target } from 'lucide-react';
import type { ReactNode } from 'react';
import { buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Panel } from '../../parts/panel.tsx';

/** What a new installation needs, in the order in which one does it. */
export function FirstSteps({
  isAdmin,
  pending,
  approved,
  modules,
}: {
  readonly isAdmin: boolean;
  readonly pending: number;
  readonly approved: number;
  readonly modules: number;
}) {
  const enrolled = approved + pending > 0;
  const steps: readonly { title: string; says: string; done: boolean; icon: ReactNode; to: string; action: string }[] =
    [
      {
        title: 'Connect the first machine',
        says: isAdmin
          ? 'Make an enrolment token: you get a line to paste on the machine, which installs the agent and connects it.'
          : 'Ask an administrator for the line that installs the agent and connects it.',
        done: enrolled,
        icon: <Server className="size-4" />,
        to: isAdmin ? '/enrolment' : '/agents',
        action: isAdmin ? 'Get the line to paste' : 'See agents',
      },
      {
        title: 'Approve it',
        says: 'Compare what it says it is, give it a name, and it may be told what to do.',
        done: approved > 0,
        icon: <Check className="size-4" />,
        to: '/agents',
        action: 'Approve',
      },
      {
        title: 'Write a module',
        says: 'A module says how files, packages and services should be. Try it as a plan first: that changes nothing.',
        done: modules > 0,
        icon: <Boxes className="size-4" />,
        to: '/modules/new',
        action: 'New module',
      },
      {
        title: 'Assign it',
        says: 'An assignment gives modules to every agent that a selector matches, those to come included.',
        done: false,
        icon: <Target className="size-4" />,
        to: '/assignments/new',
        action: 'New assignment',
      },
    ];
  const next = steps.findIndex(({ done }) => !done);
  return (
    <Panel title="Begin here" flush>
      <ol className="divide-y">
        {steps.map(({ title, says, done, icon, to, action }, index) => (
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
              {!done && <p className="text-muted text-sm">{says}</p>}
            </div>
            {!done && (
              <Link to={to as '/'} className={buttonClasses(index === next ? 'primary' : 'plain')}>
                {action}
              </Link>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
