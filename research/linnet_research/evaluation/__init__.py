"""Measures models beside linnet-score: facts, everyday sentences, tasks."""
