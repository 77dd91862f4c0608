import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { type AssignmentWithMatches, assignmentQuery } from '../../api/assignments.ts';
import { Badge } from '../../parts/badge.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { ColumnsSkeleton, ItemPage, LoadedItem } from '../item-page.tsx';
import { OperatorName } from '../links.tsx';
import { AssignmentActions } from './assignment-actions.tsx';
import { AssignmentForm } from './assignment-form.tsx';
import { AssignmentOverview } from './assignment-overview.tsx';
import { AssignmentRuns } from './assignment-runs.tsx';

export function AssignmentPage() {
  const { assignment: name = '' } = useParams({ strict: false });
  const query = useQuery(assignmentQuery(name));
  return (
    <LoadedItem
      of="assignment"
      title={visibleText(name)}
      query={query}
      skeleton={<ColumnsSkeleton tabs={['Overview', 'Runs', 'Edit']} />}
    >
      {(assignment) => <AssignmentDetails key={name} assignment={assignment} />}
    </LoadedItem>
  );
}

type Tab = 'overview' | 'runs' | 'edit';

function AssignmentDetails({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { name, mode } = assignment;
  const [tab, setTab] = useUrlState<Tab>('tab', 'overview');
  return (
    <ItemPage
      of="assignment"
      title={visibleText(name)}
      subtitle={
        <span className="flex flex-wrap items-center gap-x-2">
          <Badge>{mode}</Badge>
          {assignment.window_only && <Badge>windows only</Badge>}
          <span>
            created <Time at={assignment.created_at} /> by <OperatorName id={assignment.created_by} />
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
    </ItemPage>
  );
}

export function NewAssignmentPage() {
  const navigate = useNavigate();
  const [module] = useUrlState<string>('module', '');
  return (
    <ItemPage
      of="assignment"
      title="New assignment"
      description="Assigns modules to all current and future agents that match a selector."
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
    </ItemPage>
  );
}
