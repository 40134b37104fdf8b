// Turns the column headings into buttons that sort. Without scripts the tables stay in their initial order.
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("n");
      const now = head.getAttribute("aria-sort");
      const order = now ? (now === "ascending" ? -1 : 1) : number ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      const key = (row) => number ? Number(row.cells[column].dataset.v) : row.cells[column].textContent;
      const compare = number ? (a, b) => key(a) - key(b) : (a, b) => key(a).localeCompare(key(b));
      body.append(...[...body.rows].sort((a, b) => order * compare(a, b)));
    });
  });
}
