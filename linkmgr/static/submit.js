// Submit the form when the page opens.
document.forms[0].submit();
