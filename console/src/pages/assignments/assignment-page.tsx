import { ApiError } from '@muster/protocol/client';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { type AssignmentWithMatches, assignmentQuery } from '../../api/assignments.ts';
import { Badge } from '../../parts/badge.tsx';
import { buttonClasses } from '../../parts/button.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { ListLink, OperatorName } from '../links.tsx';
import { AssignmentActions } from './assignment-actions.tsx';
import { AssignmentForm } from './assignment-form.tsx';
import { AssignmentOverview } from './assignment-overview.tsx';
import { AssignmentRuns } from './assignment-runs.tsx';

export function AssignmentPage() {
  const { assignment: name = '' } = useParams({ strict: false });
  const query = useQuery(assignmentQuery(name));
  if (query.data !== undefined) return <AssignmentDetails key={name} assignment={query.data} />;
  return (
    <Page
      title={visibleText(name)}
      crumbs={[
        <ListLink key="list" to="/assignments">
          Assignments
        </ListLink>,
      ]}
    >
      {query.isPending ? (
        <Panel flush>
          <SkeletonRows />
        </Panel>
      ) : query.error instanceof ApiError && query.error.problem.status === 404 ? (
        <Empty
          title="Assignment not found"
          action={
            <Link to="/assignments" className={buttonClasses()}>
              All assignments
            </Link>
          }
        >
          It may have been removed. Applied resources stay until the next apply on each agent.
        </Empty>
      ) : (
        <Failure error={query.error} retry={() => void query.refetch()} />
      )}
    </Page>
  );
}

type Tab = 'overview' | 'runs' | 'edit';

function AssignmentDetails({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { name, mode } = assignment;
  const [tab, setTab] = useUrlState<Tab>('tab', 'overview');
  return (
    <Page
      title={visibleText(name)}
      crumbs={[
        <ListLink key="list" to="/assignments">
          Assignments
        </ListLink>,
      ]}
      subtitle={
        <span className="flex flex-wrap items-center gap-x-2">
          <Badge>{mode}</Badge>
          {assignment.window_only && <Badge>windows only</Badge>}
          <span>
            created by <OperatorName id={assignment.created_by} />, <Time at={assignment.created_at} />
          </span>
        </span>
      }
      actions={<AssignmentActions assignment={assignment} />}
    >
      <Tabs<Tab>
        label="Assignment"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            value: 'overview',
            label: 'Overview',
            content: () => <AssignmentOverview assignment={assignment} />,
          },
          { value: 'runs', label: 'Runs', content: () => <AssignmentRuns name={name} /> },
          {
            value: 'edit',
            label: 'Edit',
            content: () => (
              <AssignmentForm
                base={assignment}
                onCancel={() => setTab('overview')}
                onDone={() => {
                  notify('Saved. Changes take effect with the next apply.');
                  setTab('overview');
                }}
              />
            ),
          },
        ]}
      />
    </Page>
  );
}

export function NewAssignmentPage() {
  const navigate = useNavigate();
  const [module] = useUrlState<string>('module', '');
  return (
    <Page
      title="New assignment"
      description="Assigns modules to all current and future agents that match a selector."
      crumbs={[
        <ListLink key="list" to="/assignments">
          Assignments
        </ListLink>,
      ]}
    >
      <AssignmentForm
        base={null}
        module={module}
        onCancel={() => void navigate({ to: '/assignments' })}
        onDone={({ name }) => {
          notify('Created. Plan it to see its changes.');
          void navigate({ to: '/assignments/$assignment', params: { assignment: name } });
        }}
      />
    </Page>
  );
}
