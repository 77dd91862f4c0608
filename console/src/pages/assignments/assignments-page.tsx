import { Page } from '../../parts/page.tsx';

export function AssignmentsPage() {
  return <Page title="Assignments">{null}</Page>;
}
